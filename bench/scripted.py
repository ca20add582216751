"""A model that says one sentence at once, as a plugin: what is measured with it is everything but the model."""

from collections.abc import AsyncIterator
from pathlib import Path

from bot import Completion, Prompt, Registry, ToolCall
from bot.settings import ROOT

ANSWER = "Tus datos se guardan mientras tú quieras, y se borran del todo cuando lo pides [1]."


class Scripted:
    """Answers everything with one sentence that cites the first passage."""

    name = model = "scripted"

    async def complete(self, prompt: Prompt) -> Completion:
        """The sentence; where facts are asked for, that there are none."""
        return Completion('{"facts": []}' if prompt.schema else ANSWER)

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | ToolCall]:
        """The sentence, whole."""
        yield ANSWER


def register(registry: Registry) -> None:
    """Enter the bot: `BOT_PROVIDER=scripted`."""
    registry.provider("scripted", lambda parts: Scripted())


def installed(folder: Path) -> str:
    """Make this module a plugin that is installed in a folder; the PYTHONPATH with which a bot finds it."""
    info = folder / "lib" / "sabio_scripted-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sabio-scripted\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[sabio.plugins]\nscripted = bench.scripted\n", encoding="utf-8")
    return f"{folder / 'lib'}:{ROOT}"
