"""plugins/ai/history.py"""

import pytest

from bot import Database
from bot.testing import MockAIProvider, create_test_bot
from plugins.ai.history import PRUNE_EVERY


async def stored(database: Database, chat: str) -> list[str]:
    """What the table has of a chat, oldest first."""
    rows = await database.all("SELECT content FROM messages WHERE agent_id = :agent_id AND chat_key = :chat ORDER BY seq", {"chat": chat})
    return [row["content"] for row in rows]


@pytest.mark.parametrize(("window", "already"), [(4, 0), (4, 1), (1, 0), (30, 0)])
async def test_what_no_window_can_hold_leaves_the_table(window: int, already: int) -> None:
    """The table keeps what the window needs and a bounded rest, of each chat by itself; the model is sent what it would be sent anyway."""
    async with create_test_bot(provider=MockAIProvider(reply="vale"), settings={"BOT_MAX_CONTEXT_MESSAGES": str(window)}) as bot:
        for number in range(already):  # as an import puts it
            await bot.database.write(
                "INSERT INTO messages (agent_id, id, chat_key, user_id, role, content, created_at, seq)"
                " VALUES (:agent_id, :id, 'a', 'ana', 'user', 'antes', 1, :seq)",
                {"id": f"m{number}", "seq": number + 1},
            )
        await bot.ai.reply_in_chat("b", "aparte", user_id="ana")
        most = 0
        for number in range(60):
            await bot.ai.reply_in_chat("a", f"mensaje {number}", user_id="ana")
            most = max(most, len(await stored(bot.database, "a")))
        left = await stored(bot.database, "a")
        other = await stored(bot.database, "b")
        sent = [message["content"] for message in bot.provider.calls[-1].messages]

    assert window < most <= window + 1 + PRUNE_EVERY
    assert left[-2:] == ["mensaje 59", "vale"]
    assert other == ["aparte", "vale"]
    assert len(sent) == window + 1
    assert sent[-1] == "mensaje 59"


async def test_the_ids_of_messages_grow() -> None:
    """Each new row stands beside the last one in the file: random ids would write another page of it for each."""
    async with create_test_bot(provider=MockAIProvider(reply="vale")) as bot:
        for number in range(20):
            await bot.ai.reply_in_chat(f"chat:{number}", "hola", user_id="ana")
        rows = await bot.database.all("SELECT chat_key FROM messages WHERE role = 'user' ORDER BY id")

    assert [row["chat_key"] for row in rows] == [f"chat:{number}" for number in range(20)]
