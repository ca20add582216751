"""Conversations on Telegram as a new user has them, written down from a run of the real process.

`python -m tests.e2e.telegram_transcript > docs/telegram.md` makes the page, and a test sees that it is still true.
"""

import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from babel.dates import format_date

from tests.e2e.telegram_world import World, world

PAGE = Path(__file__).resolve().parents[2] / "docs" / "telegram.md"
ENGLISH = "# Shipping\n\n## Times\n\nA parcel to the Canary Islands takes nine working days.\n\n## Cost\n\nShipping costs five euros.\n"
FORUM, TOPIC = -1000000000042, 7
NAMES = {1: "Ana", 2: "John", 3: "Luis", 4: "Eva"}
HEAD = """# Sabio on Telegram: what it looks like

This page is written by `python -m tests.e2e.telegram_transcript`, from a run of the real process over a stand-in for Telegram, without a
language model and with two small documents. A test sees that it is true. What stands in brackets are buttons.
"""


class Scribe:
    """Writes down who says what, and what comes back."""

    def __init__(self, here: World) -> None:
        self.here = here
        self.lines = [HEAD]

    def title(self, text: str) -> None:
        """A new scene."""
        self.lines.append(f"## {text}\n")

    async def says(self, who: int, text: str, *, chat: int | None = None, lang: str = "es", answers: int = 1, **more: Any) -> None:
        """Somebody says something; wait for that many messages, and write all down."""
        place = who if chat is None else chat
        before = len(self.here.telegram.messages[place])
        self._write(NAMES[who], text)
        await self.here.telegram.say(text, user=who, chat=chat, lang=lang, **more)
        await self._hear(place, before, answers, lang)

    async def presses(self, who: int, label: str, *, lang: str = "es", answers: int = 1) -> None:
        """Somebody presses a button under the last message."""
        messages = self.here.telegram.messages[who]
        before = len(messages)
        self.lines.append(f"*{NAMES[who]} presses [{label}]*\n")
        await self.here.telegram.press(list(messages.values())[-1], label, user=who, lang=lang)
        await self._hear(who, before, answers, lang)

    async def _hear(self, place: int, before: int, answers: int, lang: str) -> None:
        await self.here.telegram.until(lambda: len(self.here.telegram.messages[place]) >= before + answers)
        for message in list(self.here.telegram.messages[place].values())[before:]:
            rows = (message.get("reply_markup") or {}).get("inline_keyboard", [])
            buttons = "".join(f"\n\n{' '.join('[' + button['text'] + ']' for button in row)}" for row in rows)
            today = format_date(datetime.now(UTC).date(), format="medium", locale=lang)
            self._write("Sabio", f"{message['text']}{buttons}".replace(today, "(…)"))

    def _write(self, who: str, text: str) -> None:
        quoted = "\n".join(f"> {line}".rstrip() for line in text.replace("\n", "\n\n").split("\n"))
        quoted = "\n".join(line for n, line in enumerate(quoted.split("\n")) if line != ">" or quoted.split("\n")[n - 1] != ">")
        self.lines.append(f"**{who}**\n\n{quoted}\n")


async def transcript(folder: Path) -> str:
    """The page."""
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs" / "shipping.md").write_text(ENGLISH, encoding="utf-8")
    async with world(folder, hears_all=True, BOT_PROVIDER="extractive", OPENAI_BASE_URL="") as here:
        scribe = Scribe(here)
        scribe.title("A private chat, in Spanish")
        await scribe.says(1, "/start")
        await scribe.says(1, "¿Cuánto tarda el envío a Canarias?")
        await scribe.says(1, "/remember Prefiero que me llamen Anita")
        await scribe.says(1, "/memory")
        await scribe.presses(1, "Olvidar 1")
        await scribe.says(1, "/forget_me")
        await scribe.presses(1, "No")
        scribe.title("A private chat, in English")
        await scribe.says(2, "/start", lang="en")
        await scribe.says(2, "How long does a parcel to the Canary Islands take?", lang="en")
        await scribe.says(2, "/remember I live in Leeds", lang="en")
        await scribe.says(2, "/forget_me", lang="en")
        await scribe.presses(2, "Yes", lang="en")
        scribe.title("A topic of a group, with two people")
        topic = {"message_thread_id": TOPIC, "is_topic_message": True}
        here.telegram.admins[FORUM] = [4]
        await scribe.says(3, "¿Alguien sabe cuánto cuesta el envío?", chat=FORUM, answers=0, **topic)
        await scribe.says(4, "Sabio, ¿cuánto cuesta el envío?", chat=FORUM, **topic)
        await scribe.says(3, "/memory@sabio_test_bot", chat=FORUM, **topic)
        await scribe.says(3, "/reset@sabio_test_bot", chat=FORUM, **topic)
        await scribe.says(4, "/reset@sabio_test_bot", chat=FORUM, **topic)
        return "\n".join(scribe.lines)


def main() -> None:
    """Print the page."""
    with tempfile.TemporaryDirectory() as folder:
        print(asyncio.run(transcript(Path(folder))), end="")


if __name__ == "__main__":
    main()
