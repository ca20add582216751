"""The bot as a child process in a folder of its own: what whoever runs it would do, and see."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bot.settings import ROOT

SECONDS = 60.0
BOT = (sys.executable, "-m", "bot")
DOCUMENTS = {
    "envios.md": "# Envíos\n\n## Plazos\n\nEl envío a Canarias tarda nueve días hábiles.\n\n## Coste\n\nEl envío cuesta cinco euros.\n",
    "returns.md": "# Returns\n\n## Refunds\n\nRefunds of returned lamps take fourteen days to arrive.\n",
}


@dataclass(frozen=True, slots=True)
class Done:
    """A child that has ended."""

    code: int
    out: str
    err: str

    @property
    def answers(self) -> list[str]:
        """What was said, one answer or paragraph each."""
        return self.out.strip().split("\n\n")


@dataclass(slots=True)
class Running:
    """A child that is under way; what it wrote so far is in `out`."""

    process: asyncio.subprocess.Process
    out: str = ""
    _read: int = 0

    async def say(self, line: str) -> None:
        """Write a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        await self.process.stdin.drain()

    async def hear(self, words: str) -> str:
        """Wait until `words` come, after what was heard before; what was said up to their end."""
        assert self.process.stdout is not None
        async with asyncio.timeout(SECONDS):
            while (at := self.out.find(words, self._read)) < 0:
                if not (data := await self.process.stdout.read(65_536)):
                    raise AssertionError(f"{words!r} was not said; what was: {self.out[self._read :]!r}")
                self.out += data.decode()
        start, self._read = self._read, at + len(words)
        return self.out[start : self._read]

    async def end(self, *, stop: bool = False) -> Done:
        """End its input, or send SIGTERM; what became of it."""
        if stop:
            self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(SECONDS):
            out, err = await self.process.communicate(b"")
        return Done(self.process.returncode or 0, self.out + out.decode(), err.decode())


@dataclass(frozen=True, slots=True)
class Place:
    """A folder to run the bot in, with documents of its own under `docs`; nothing of the environment of the tests gets in."""

    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        """Where the bot keeps its files."""
        return self.folder / "data"

    def bytes_of_data(self) -> bytes:
        """Every byte of every file that the bot keeps."""
        return b"".join(path.read_bytes() for path in sorted(self.data.rglob("*")) if path.is_file())

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        paths = [str(ROOT), *filter(None, [more.get("PYTHONPATH")])]
        base = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LANG": "C.UTF-8", "BOT_DOCUMENTS": "docs"}
        return {**base, **self.env, **more, "PYTHONPATH": os.pathsep.join(paths)}

    @asynccontextmanager
    async def start(
        self, *arguments: str, command: Sequence[str] = BOT, prepare: Callable[[], None] | None = None, **env: str
    ) -> AsyncIterator[Running]:
        """A child, killed at the end of the block where it has not ended by then."""
        process = await asyncio.create_subprocess_exec(
            *command,
            *arguments,
            cwd=self.folder,
            env=self._environment(env),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            preexec_fn=prepare,
        )
        try:
            yield Running(process)
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()

    async def run(
        self,
        *arguments: str,
        says: str | bytes = "",
        command: Sequence[str] = BOT,
        prepare: Callable[[], None] | None = None,
        **env: str,
    ) -> Done:
        """A child that is given its whole input at once; what became of it."""
        async with self.start(*arguments, command=command, prepare=prepare, **env) as child, asyncio.timeout(SECONDS):
            given = says.encode() if isinstance(says, str) else says
            out, err = await child.process.communicate(given)
            return Done(child.process.returncode or 0, out.decode(), err.decode())
