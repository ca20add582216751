-- A fact is unique by what it says: key is the normal form of a text, or the name of a keyed fact. stated = 1 means new.
CREATE TABLE facts (
    agent_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    namespace TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    id TEXT NOT NULL,
    value TEXT NOT NULL,
    source TEXT NOT NULL,
    evidence TEXT NOT NULL,
    stated BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (agent_id, subject, namespace, kind, key)
);
CREATE INDEX facts_expiry ON facts (agent_id, expires_at);
