-- generation changes when all of a subject's facts are forgotten, so that what is under way then writes nothing.
CREATE TABLE memory_subjects (
    agent_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    generation BIGINT NOT NULL,
    writes BIGINT NOT NULL,
    paused BIGINT NOT NULL,
    PRIMARY KEY (agent_id, subject)
);

-- What a person said that is still to be looked at for facts.
CREATE TABLE memory_queue (
    agent_id TEXT NOT NULL,
    id TEXT NOT NULL,
    subject TEXT NOT NULL,
    generation BIGINT NOT NULL,
    said TEXT NOT NULL,
    replied TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (agent_id, id)
);
CREATE INDEX memory_queue_subject ON memory_queue (agent_id, subject, created_at);

-- What extraction cost on a day (days since 1970, UTC).
CREATE TABLE memory_budget (
    agent_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    day BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    PRIMARY KEY (agent_id, subject)
);
