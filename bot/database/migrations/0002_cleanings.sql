-- What an erasure has still to remove that is in no table: a row for each kind, until it is done. The next start finds it after a crash.
CREATE TABLE cleanings (
    agent_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (agent_id, user_id, name)
);
