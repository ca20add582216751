-- What the bot answers from. `digest` is of the file's bytes, `recipe` of how it was cut; `body` is the text of what has no file to be
-- read again. `owner` is the person who sent it. `state` is 'live', or 'removed' for a file that stays in its folder and must not come back.
CREATE TABLE documents (
    agent_id TEXT NOT NULL,
    id TEXT NOT NULL,
    label TEXT NOT NULL,
    origin TEXT NOT NULL,
    path TEXT NOT NULL,
    state TEXT NOT NULL,
    digest TEXT NOT NULL,
    recipe TEXT NOT NULL,
    body TEXT NOT NULL,
    metadata TEXT NOT NULL,
    checksum TEXT NOT NULL,
    characters BIGINT NOT NULL,
    pieces BIGINT NOT NULL,
    owner TEXT NOT NULL,
    owner_is_admin BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (agent_id, id)
);
CREATE INDEX documents_of_owner ON documents (agent_id, owner);

CREATE TABLE chunks (
    agent_id TEXT NOT NULL,
    document_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    section TEXT NOT NULL,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (agent_id, document_id, position)
);
CREATE INDEX chunks_by_digest ON chunks (agent_id, digest);

-- A vector belongs to a text and an embedder, whatever document the text stands in: what did not change is not embedded again.
CREATE TABLE chunk_vectors (
    agent_id TEXT NOT NULL,
    embedder TEXT NOT NULL,
    digest TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (agent_id, embedder, digest)
);

-- Rises with every change, so that each process that answers from these tables notices.
CREATE TABLE library_state (
    agent_id TEXT NOT NULL,
    generation BIGINT NOT NULL,
    PRIMARY KEY (agent_id)
);
