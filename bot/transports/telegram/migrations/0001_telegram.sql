-- What was sent for each letter, part by part: a letter that comes again goes on where it was, and an edited question finds its answer.
-- parts is JSON: [[message_id, 1 where it is the final text], …]; asked is a digest of the question.
CREATE TABLE telegram_replies (
    agent_id TEXT NOT NULL,
    letter TEXT NOT NULL,
    chat_key TEXT NOT NULL,
    user_id TEXT NOT NULL,
    question BIGINT NOT NULL,
    asked TEXT NOT NULL,
    parts TEXT NOT NULL,
    sent_at BIGINT NOT NULL,
    PRIMARY KEY (agent_id, letter)
);
CREATE INDEX telegram_replies_question ON telegram_replies (agent_id, chat_key, user_id, question);

-- Chats that blocked or removed the bot, and groups that were told how to reach it.
CREATE TABLE telegram_chats (
    agent_id TEXT NOT NULL,
    chat_key TEXT NOT NULL,
    present BIGINT NOT NULL,
    told BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (agent_id, chat_key)
);

-- What was last set at Telegram: menus and descriptions, as digests.
CREATE TABLE telegram_settings (
    agent_id TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (agent_id, name)
);
