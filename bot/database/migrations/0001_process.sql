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

-- The three queues have one form. line is what keeps its order: a chat for inbox and outbox, a person for jobs. Rows that are done keep
-- their id and no more, and the indexes are over the others, so that a long past costs a claim nothing.
CREATE TABLE inbox (
    agent_id TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    line TEXT NOT NULL,
    user_id TEXT NOT NULL,
    via TEXT NOT NULL,
    payload TEXT NOT NULL,
    state TEXT NOT NULL,
    seq BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    claimed_by TEXT NOT NULL,
    claimed_until BIGINT NOT NULL,
    PRIMARY KEY (agent_id, id)
);
CREATE INDEX inbox_open ON inbox (agent_id, seq) WHERE state IN ('new', 'claimed');
CREATE INDEX inbox_line ON inbox (agent_id, line, seq) WHERE state IN ('new', 'claimed');

CREATE TABLE outbox (
    agent_id TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    line TEXT NOT NULL,
    user_id TEXT NOT NULL,
    via TEXT NOT NULL,
    payload TEXT NOT NULL,
    state TEXT NOT NULL,
    seq BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    claimed_by TEXT NOT NULL,
    claimed_until BIGINT NOT NULL,
    PRIMARY KEY (agent_id, id)
);
CREATE INDEX outbox_open ON outbox (agent_id, seq) WHERE state IN ('new', 'claimed');
CREATE INDEX outbox_line ON outbox (agent_id, line, seq) WHERE state IN ('new', 'claimed');

CREATE TABLE jobs (
    agent_id TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    line TEXT NOT NULL,
    user_id TEXT NOT NULL,
    via TEXT NOT NULL,
    payload TEXT NOT NULL,
    state TEXT NOT NULL,
    seq BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    claimed_by TEXT NOT NULL,
    claimed_until BIGINT NOT NULL,
    PRIMARY KEY (agent_id, id)
);
CREATE INDEX jobs_open ON jobs (agent_id, seq) WHERE state IN ('new', 'claimed');
CREATE INDEX jobs_line ON jobs (agent_id, line, seq) WHERE state IN ('new', 'claimed');

-- An erasure leaves a row here until what it deleted is overwritten on disk as well; the next start finds it after a crash.
CREATE TABLE scrubs (
    agent_id TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (agent_id, id)
);
