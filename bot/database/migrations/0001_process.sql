-- The fence: a row for each person and each chat; the epoch changes when they are erased.
CREATE TABLE subjects (
    agent_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    writes BIGINT NOT NULL,
    PRIMARY KEY (agent_id, subject)
);

-- profile is JSON: {namespace: {key: value}}
CREATE TABLE users (
    agent_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    language TEXT,
    profile TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (agent_id, user_id)
);

-- The three queues have one form. line is what keeps its order: a chat for inbox and outbox, a person for jobs.
CREATE TABLE inbox (
    agent_id TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    line TEXT NOT NULL,
    user_id TEXT NOT NULL,
    payload TEXT NOT NULL,
    state TEXT NOT NULL,
    seq BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    claimed_by TEXT NOT NULL,
    claimed_until BIGINT NOT NULL,
    PRIMARY KEY (agent_id, id)
);
CREATE INDEX inbox_waiting ON inbox (agent_id, state, line, seq);
CREATE INDEX inbox_person ON inbox (agent_id, user_id);

CREATE TABLE outbox (
    agent_id TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    line TEXT NOT NULL,
    user_id TEXT NOT NULL,
    payload TEXT NOT NULL,
    state TEXT NOT NULL,
    seq BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    claimed_by TEXT NOT NULL,
    claimed_until BIGINT NOT NULL,
    PRIMARY KEY (agent_id, id)
);
CREATE INDEX outbox_waiting ON outbox (agent_id, state, line, seq);
CREATE INDEX outbox_person ON outbox (agent_id, user_id);

CREATE TABLE jobs (
    agent_id TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    line TEXT NOT NULL,
    user_id TEXT NOT NULL,
    payload TEXT NOT NULL,
    state TEXT NOT NULL,
    seq BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    claimed_by TEXT NOT NULL,
    claimed_until BIGINT NOT NULL,
    PRIMARY KEY (agent_id, id)
);
CREATE INDEX jobs_waiting ON jobs (agent_id, state, line, seq);
CREATE INDEX jobs_person ON jobs (agent_id, user_id);
