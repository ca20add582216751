-- The window's table. An assistant's message bears the user_id of the person it answered, so that erasure takes it too.
-- turn_id is the update that was answered; reply is JSON, without the texts of facts and passages: those live in their own tables only.
CREATE TABLE messages (
    agent_id TEXT NOT NULL,
    id TEXT NOT NULL,
    chat_key TEXT NOT NULL,
    user_id TEXT,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    turn_id TEXT,
    reply TEXT,
    PRIMARY KEY (agent_id, id)
);
CREATE INDEX messages_chat ON messages (agent_id, chat_key, seq);
CREATE INDEX messages_person ON messages (agent_id, user_id);
CREATE UNIQUE INDEX messages_turn ON messages (agent_id, chat_key, turn_id, role);
