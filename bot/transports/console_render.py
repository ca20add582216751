"""How an answer looks in the terminal: Markdown that grows while it is written, and stands whole in the scrollback at the end.

It is imported when the terminal chat has a person at the keys; rich is imported nowhere else.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Iterable
from typing import TextIO

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console as Out
from rich.console import ConsoleDimensions, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

from bot.ports import ReplyStream
from bot.transports.console_text import clean, parted

FRAME_SECONDS = 0.1
SHARE_OF_TIME = 4  # drawing a long answer anew takes at most a fifth of the time
ROWS_LEFT_FREE = 2  # the cursor's row below the live part, and one of the question above it


class Display:
    """The part of the terminal below the last question. At most one live part at a time: a spinner, or an answer under way."""

    def __init__(self, stdout: TextIO, *, waiting: str) -> None:
        self._out = Out(file=stdout, highlight=False, markup=False, emoji=False)
        self._terminal = stdout.fileno()
        self._waiting = waiting
        self._status = waiting
        self._written = ""
        self._spinner = Spinner("dots", style="cyan")
        self._live: Live | None = None

    def wait(self, status: str | None = None) -> None:
        """Show that something is under way, and how far it is."""
        self._status = clean(status).strip() if status else self._waiting
        self._fit()
        if self._live is None:
            self._live = Live(
                get_renderable=self._now,
                console=self._out,
                transient=True,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start(refresh=True)
            self._frames = asyncio.create_task(self._draw(self._live))

    def rest(self) -> None:
        """Take the live part away."""
        if self._live is not None:
            self._frames.cancel()
            self._live.stop()
            self._live = None
        self._written = ""

    def say(self, text: str, *, verbatim: bool = False) -> None:
        """Show an answer that came whole; a verbatim one (a path, say) is neither formatted nor broken into lines."""
        if not self._written:  # an answer under way stays below what is said meanwhile
            self.rest()
        self._fit()
        words = clean(text).strip()
        if words and verbatim:
            self._out.print(Text(words), soft_wrap=True)
        elif words:
            self._out.print(formatted(words))
        self._out.print()

    async def show(self, fragments: ReplyStream) -> None:
        """Show an answer while it is written. Whatever ends it, what there is of it stays."""
        text, last = "", ""
        try:
            async for last in fragments:
                text += last
                self.wait()
                self._written = clean(text)
        finally:
            self.rest()
            answer, sources = parted(text, last, fragments.reply)
            self._keep(clean(answer).strip(), clean(sources))

    async def _draw(self, live: Live) -> None:
        drawn, took = "", 0.0
        while True:
            await asyncio.sleep(max(FRAME_SECONDS, SHARE_OF_TIME * took))
            if not self._written or self._written != drawn:  # what did not change would flicker for nothing
                drawn, started = self._written, time.monotonic()
                self._fit()
                live.refresh()
                took = time.monotonic() - started

    def _fit(self) -> None:
        """Take the size of the terminal itself: LINES and COLUMNS, which rich believes first, may be those of another one."""
        with contextlib.suppress(OSError):
            columns, lines = os.get_terminal_size(self._terminal)
            if columns and lines:
                self._out.size = ConsoleDimensions(columns, lines)

    def _keep(self, answer: str, sources: str) -> None:
        self._fit()
        if answer:
            self._out.print(formatted(answer))
        if sources:
            self._out.print()
            self._out.print(marked(sources))
        if answer or sources:
            self._out.print()

    def _now(self) -> RenderableType:
        if self._written.strip():
            return Tail(formatted(self._written))
        self._spinner.update(text=Text(self._status, style="dim", no_wrap=True, overflow="ellipsis"))
        return self._spinner


class Tail:
    """The last rows of what is too tall for the terminal: rows above the top could not be drawn anew, and would be left twice."""

    def __init__(self, whole: RenderableType) -> None:
        self._whole = whole

    def __rich_console__(self, out: Out, options: ConsoleOptions) -> RenderResult:
        """What rich calls to draw it."""
        rows = out.render_lines(self._whole, options.update(height=None), pad=False)
        for row in rows[-max(out.size.height - ROWS_LEFT_FREE, 1) :]:
            yield from row
            yield Segment.line()


def formatted(text: str) -> Markdown:
    """Markdown as it is written in chats: a line break is a break, HTML is text, and an address is shown, not hidden behind words."""
    markdown = Markdown("", code_theme="ansi_dark", hyperlinks=False)
    markdown.markup = text
    markdown.parsed = _with_breaks(MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).parse(text))
    return markdown


def marked(sources: str) -> Text:
    """The sources line: quieter than the answer, its numbers easy to find."""
    line = Text(sources, style="dim italic")
    line.highlight_regex(r"\[\d+\]", "not dim not italic bold cyan")
    return line


def _with_breaks(tokens: Iterable[Token]) -> list[Token]:
    tokens = list(tokens)
    for token in tokens:
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"
    return tokens
