"""A program with a terminal chat and nothing behind it: what is asked decides what is answered. Its argument is its data folder."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from bot.errors import ModelUnavailable
from bot.transports.console import Console
from bot.values import Passage, Reply, Update

LONG = "".join(f"- row {n} of the answer\n" for n in range(60))
MARKDOWN = "**Tres** días, [aquí](http://x.example) <b>\nhoy [1].\x1b]0;evil\x07"


class Answer:
    """Fragments with a pause after each; the last one comes when it is stopped, where it waits for that."""

    def __init__(self, *fragments: str, endless: bool = False, sources: str = "", fails: bool = False) -> None:
        self._fragments, self._endless, self._sources, self._fails = fragments, endless, sources, fails
        self._stopped = asyncio.Event()
        self._steps = self._run()
        self.reply: Reply | None = None

    async def _run(self) -> AsyncIterator[str]:
        for fragment in self._fragments:
            yield fragment
            await asyncio.sleep(0.002)
        if self._endless:
            await self._stopped.wait()
        if self._fails:
            raise ModelUnavailable("down")
        if self._sources:
            yield self._sources
        answer = "".join(self._fragments)
        self.reply = Reply(text=answer + self._sources, answer=answer, citations=[Passage(text="x", citation="faq")])

    async def stop(self) -> None:
        self._stopped.set()

    def __aiter__(self) -> AsyncIterator[str]:
        return self._steps

    async def __anext__(self) -> str:
        return await anext(self._steps)


class Talker:
    """Answers while the console waits."""

    def __init__(self, data_dir: Path) -> None:
        self._waiting: list[Update] = []
        self._answer: Answer | None = None
        self.console = Console(
            accept=self._accept,
            settle=self._settle,
            gettext=lambda message: message,
            data_dir=data_dir,
            commands=["/help", "/my_data"],
        )

    async def _accept(self, update: Update) -> None:
        if update.kind == "stop":
            if self._answer:
                await self._answer.stop()
        else:
            self._waiting.append(update)

    async def _settle(self) -> None:
        while self._waiting:
            await self._respond(self._waiting.pop(0).text)

    async def _respond(self, text: str) -> None:
        match text:
            case "long":
                await self._stream(Answer(*LONG.splitlines(keepends=True)))
            case "markdown":
                await self._stream(Answer(MARKDOWN, sources="\n\nFuentes: [1] faq"))
            case "endless":
                await self._stream(Answer("It begins", " and goes on", endless=True))
            case "fails":
                try:
                    await self._stream(Answer("It begins", fails=True))
                except ModelUnavailable:
                    await self._say("It broke off")
            case "hangs":
                await asyncio.Event().wait()
            case "works":
                for n in range(3):
                    await self.console.progress("console:local", "key", f"{n} of 3")
                    await asyncio.sleep(0.15)
                await self._say("All done")
            case "erase":
                await self._say(f"Erased {await self.console.erase_files()}")
            case _:
                await self._say(f"You said: {text!r}")

    async def _stream(self, answer: Answer) -> None:
        self._answer = answer
        await self.console.stream("console:local", answer)
        self._answer = None

    async def _say(self, text: str) -> None:
        await self.console.send("console:local", text)


if __name__ == "__main__":
    asyncio.run(Talker(Path(sys.argv[1])).console.run())
