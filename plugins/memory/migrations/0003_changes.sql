ALTER TABLE facts ADD COLUMN pinned BIGINT NOT NULL DEFAULT 0;

ALTER TABLE memory_subjects ADD COLUMN quiet BIGINT NOT NULL DEFAULT 0;

ALTER TABLE memory_queue ADD COLUMN chat_key TEXT NOT NULL DEFAULT '';

-- What changed by itself, so that a person can take it back: fact_id came, and what it replaced (kind is '' where it replaced nothing).
-- All rows of one batch were one change.
CREATE TABLE memory_changes (
    agent_id TEXT NOT NULL,
    id TEXT NOT NULL,
    subject TEXT NOT NULL,
    namespace TEXT NOT NULL,
    batch TEXT NOT NULL,
    changed_at BIGINT NOT NULL,
    fact_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    source TEXT NOT NULL,
    evidence TEXT NOT NULL,
    pinned BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (agent_id, id)
);
CREATE INDEX memory_changes_subject ON memory_changes (agent_id, subject, changed_at);
