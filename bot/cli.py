"""The command line: run, ask, ingest, eval, forget, export, import, check. Each returns an exit code that scripts can use."""

import argparse
import asyncio
import contextlib
import gc
import io
import json
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from bot import log
from bot.app import Bot, Configuration, configure, open_bot
from bot.database import SQLITE, shown
from bot.errors import BotError, ConfigurationError, ModelError, StorageError, TransportError
from bot.i18n import Catalogs, detect
from bot.ports import IngestOutcome, Provider
from bot.settings import Settings, environment
from bot.transports.console import PERSON, Console
from bot.transports.console_piped import to_nowhere
from bot.transports.console_seat import seated
from bot.transports.telegram.hook import webhook_of
from bot.values import Prompt, Update
from bot.words import marked as _

OK, FAILED, MISUSED, NO_STORAGE, NO_MODEL = 0, 1, 2, 3, 4
LOG = "sabio.log"  # in the folder of the data, while a person is at the keys
ASKING = "console:ask"  # the chat of `ask`: the terminal chat's window is its own
SECONDS_BETWEEN_PROGRESS = 2.0
YOUNG_OBJECTS = 10_000  # that the collector lets come together: a turn makes some thousands, and nearly all go by themselves

Gettext = Callable[[str], str]


def main(arguments: Sequence[str]) -> int:
    """Run one command of the command line; returns its exit code."""
    redaction = log.Redaction()
    _make_writable()
    try:
        variables = environment()
        _ = _words_of_the_shell(variables)  # raises for a broken catalog, as `configure` does for a setting
        parsed = _parser(_).parse_args(arguments or ["run"])
        configuration = configure(variables)
        redaction = log.set_up(configuration.settings.log_level, secrets=configuration.secrets)
        loop_factory = loops_for(configuration.settings) if parsed.run is _run else None
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return int(runner.run(parsed.run(configuration, parsed, _)))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BotError as error:
        print(f"sabio: {redaction.clean(str(error))}", file=sys.stderr)
        return _exit_code(error)


def loops_for(settings: Settings) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the event loop of the bot: uvloop where many are served at once. None stands for the standard one."""
    if settings.telegram_token is None or sys.platform == "win32":  # there is no uvloop for Windows
        return None
    import uvloop

    return uvloop.new_event_loop


def _make_writable() -> None:
    """Let nothing break off for where it is written: a character that cannot be shown is replaced, and a closed stream leads nowhere."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - as long as the process lives
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _say(text: str) -> None:
    """Print a line. A reader that goes away (`| head -1`) ends nothing. Raises TransportError where it cannot be written."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        to_nowhere(sys.stdout)
    except OSError as error:
        to_nowhere(sys.stdout)
        raise TransportError(f"standard output cannot be written: {error.strerror}") from error


def _exit_code(error: BotError) -> int:
    codes = {ConfigurationError: MISUSED, StorageError: NO_STORAGE, ModelError: NO_MODEL}
    return next((code for kind, code in codes.items() if isinstance(error, kind)), FAILED)


def _words_of_the_shell(variables: Mapping[str, str]) -> Gettext:
    """The command line speaks the language of the shell, else the bot's own."""
    catalogs = Catalogs.load()
    return catalogs.gettext(_shell_language(catalogs, variables))


def _shell_language(catalogs: Catalogs, variables: Mapping[str, str]) -> str:
    shell = next((variables[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if variables.get(name)), "")
    return catalogs.match(shell) or catalogs.match(variables.get("BOT_DEFAULT_LANGUAGE")) or catalogs.default


# ---------------------------------------------------------------------------------------------- what there is


ARGPARSE = (  # its own sentences, as far as our arguments can call for them: it brings them in English alone
    _("usage: "),
    _("positional arguments"),
    _("options"),
    _("show this help message and exit"),
    _("argument %(argument_name)s: %(message)s"),
    _("the following arguments are required: %s"),
    _("unrecognized arguments: %s"),
    _("expected one argument"),
    _("expected at least one argument"),
    _("ignored explicit argument %r"),
    _("ambiguous option: %(option)s could match %(matches)s"),
    _("invalid %(type)s value: %(value)r"),
    _("invalid choice: %(value)r (choose from %(choices)s)"),
)


def _let_argparse_speak(gettext: Gettext) -> None:
    """In the language of whoever reads it: argparse looks its sentences up by a function that it calls `_`."""
    vars(argparse)["_"] = gettext


def _parser(_: Gettext) -> argparse.ArgumentParser:
    exits = _(
        "Exit codes: 0 done, 1 something of it failed, 2 a setting or an argument is wrong, 3 the database cannot be used, "
        "4 the model did not answer."
    )
    _let_argparse_speak(_)
    parser = argparse.ArgumentParser(
        prog="python -m bot",
        description=_("Sabio: a chat bot that remembers each person and answers from documents, citing them."),
        epilog=_("Settings are environment variables, or stand in .env or bot.toml: see .env.example.") + "\n" + exits,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar=_("COMMAND"), dest="command")

    def add(name: str, run: Callable[..., Awaitable[int]], help: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help, description=help, epilog=exits, formatter_class=argparse.RawDescriptionHelpFormatter)
        command.set_defaults(run=run)
        return command

    add("run", _run, _("start every transport that is configured, or the terminal chat; this is the default"))
    ask = add("ask", _ask, _("ask one question and print the answer"))
    ask.add_argument("question", help=_("the question; - reads it from standard input"))
    ingest = add("ingest", _ingest, _("read files and folders into the documents that the bot answers from"))
    ingest.add_argument("paths", nargs="+", metavar="PATH", help=_("a file, or a folder with everything below it"))
    evaluate = add("eval", _eval, _("measure how well documents are found, with questions whose answers are known"))
    evaluate.add_argument("questions", metavar="FILE", help=_("questions, a JSON object on each line; - reads them from standard input"))
    evaluate.add_argument("--report", metavar="FILE", help=_("write a page with plots and every question too, as HTML"))
    evaluate.add_argument("--top-k", type=int, metavar="N", help=_("passages for a question, in place of BOT_TOP_K"))
    evaluate.add_argument("--min-score", type=float, metavar="S", help=_("in place of BOT_MIN_SCORE"))
    forget = add("forget", _forget, _("erase everything that is held about a person"))
    forget.add_argument("user", metavar="USER", help=_("canonical id, as in telegram:123 or console:local"))
    export = add("export", _export, _("print everything that is held about a person, as JSON"))
    export.add_argument("user", metavar="USER", help=_("canonical id, as in telegram:123 or console:local"))
    export.add_argument("-o", "--output", metavar="FILE", help=_("write to this file instead"))
    restore = add("import", _import, _("take back what export printed, for the person that it names"))
    restore.add_argument("file", metavar="FILE", help=_("the JSON file; - reads it from standard input"))
    add("check", _check, _("look at the configuration, the database, the model and the index: one line each"))
    return parser


# ---------------------------------------------------------------------------------------------- run


async def _run(configuration: Configuration, parsed: argparse.Namespace, _: Gettext) -> int:
    settings = configuration.settings
    with contextlib.suppress(asyncio.CancelledError):  # SIGTERM: what is under way is put back for the next start
        async with AsyncExitStack() as stack:
            stack.enter_context(_cancelled_by(signal.SIGTERM))
            webhook_of(settings)
            bot = await stack.enter_async_context(open_bot(configuration, warm=False))
            if settings.telegram_token is not None:
                await _telegram(bot, settings.telegram_token.get_secret_value(), stack)
                return OK
            if {"http_host", "http_port"} & settings.model_fields_set:
                await stack.enter_async_context(_served(bot))
            name = stack.enter_context(seated(_seats(settings), settings.agent_id))
            console = _console(bot, name, _console_language(configuration))
            bot.attach(console)
            if console.is_at_the_keys and sys.stderr.isatty():
                stack.enter_context(log.kept_in(settings.data_dir / LOG))
            await stack.enter_async_context(_running(bot))
            await console.run()
    return OK


async def _telegram(bot: Bot, token: str, stack: AsyncExitStack) -> None:
    from bot.transports.telegram.composition import open_telegram  # takes seconds, and only whoever uses it pays

    telegram = await stack.enter_async_context(open_telegram(bot, bot.settings, token))
    bot.attach(telegram.transport)
    chosen = telegram.webhook is not None or bool({"http_host", "http_port"} & bot.settings.model_fields_set)
    checks = {"telegram": telegram.transport.state.check}
    try:
        await stack.enter_async_context(_served(bot, routes=telegram.routes, checks=checks))
    except ConfigurationError as error:
        if chosen:
            raise
        logging.getLogger(__name__).warning("/healthz and /readyz are not served: %s", error)
    await stack.enter_async_context(_running(bot))
    await telegram.transport.run(webhook=telegram.webhook)


def _console_language(configuration: Configuration) -> Gettext:
    return configuration.catalogs.gettext(configuration.settings.default_language)


def _seats(settings: Settings) -> Path:
    """The file by which terminal chats on one database know of each other: beside that file, else in the folder of the data."""
    path = settings.database_url.removeprefix(SQLITE)
    beside = path not in (settings.database_url, ":memory:")
    return Path(f"{path}-terminals") if beside else settings.data_dir / "terminals"


def _console(bot: Bot, name: str, gettext: Gettext) -> Console:
    async def accept(update: Update) -> None:
        await bot.accept(update)

    async def settle() -> None:
        await bot.settled(console.chat_key)

    console = Console(
        name=name,
        accept=accept,
        settle=settle,
        gettext=gettext,
        data_dir=bot.settings.data_dir,
        commands=[f"/{command}" for command in bot.registry.commands],
    )
    return console


@asynccontextmanager
async def _running(bot: Bot) -> AsyncIterator[None]:
    chat = asyncio.current_task()
    warming = asyncio.create_task(bot.warm_up())  # people are answered meanwhile: the first question waits for it, within its time-out
    warming.add_done_callback(lambda _: _leave_alone_what_stays())
    working = asyncio.create_task(bot.run())
    working.add_done_callback(lambda task: None if task.cancelled() or chat is None else chat.cancel())
    try:
        yield
    finally:
        for task in (working, warming):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def _leave_alone_what_stays() -> None:
    """What is there after the start stays: the collector of cycles need not go through modules, catalogs and the index again and again."""
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
    gc.freeze()


@asynccontextmanager
async def _served(bot: Bot, *, routes: Sequence[Any] = (), checks: Mapping[str, Any] | None = None) -> AsyncIterator[None]:
    from bot.transports.http import serve

    async def database() -> None:
        await bot.database.one("SELECT 1 AS one")

    async def index() -> None:
        await bot.library.listing()

    settings = bot.settings
    async with serve(
        settings.http_host, settings.http_port, routes=routes, checks={"database": database, "index": index, **(checks or {})}
    ):
        yield


@contextlib.contextmanager
def _cancelled_by(number: signal.Signals) -> Any:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(number, task.cancel)
    try:
        yield
    finally:
        loop.remove_signal_handler(number)


# ---------------------------------------------------------------------------------------------- one thing


async def _ask(configuration: Configuration, parsed: argparse.Namespace, _: Gettext) -> int:
    question = sys.stdin.read() if parsed.question == "-" else parsed.question
    async with open_bot(configuration) as bot:
        words = bot.catalogs.gettext(lang := detect(question) or configuration.settings.default_language)
        try:
            _say(await bot.ai.reply_in_chat(ASKING, question, user_id=PERSON, lang=lang))
        except ModelError as error:
            print(error.words(words), file=sys.stderr)
            raise
    return OK


async def _ingest(configuration: Configuration, parsed: argparse.Namespace, _: Gettext) -> int:
    paths = [Path(path) for path in parsed.paths]
    async with open_bot(configuration) as bot:
        say = Progress()
        outcomes = await bot.library.add_files(paths, progress=say)
        say.end()
    failed = 0
    for outcome in outcomes:
        bad = outcome.failed
        failed += bad
        if bad:
            print(_outcome_line(outcome, _), file=sys.stderr)
        else:
            _say(_outcome_line(outcome, _))
    _say(_("{done} of {n} files can be answered from.").format(done=len(outcomes) - failed, n=len(outcomes)))
    return FAILED if failed or not outcomes else OK


def _outcome_line(outcome: IngestOutcome, _: Gettext) -> str:
    done = {
        "added": _("added (pieces: {n})"),
        "changed": _("changed (pieces: {n})"),
        "unchanged": _("unchanged (pieces: {n})"),
        "removed": _("removed"),
        "partly": _("read in part (pieces: {n})"),
    }
    words = [done[outcome.status].format(n=outcome.chunks)] if outcome.status in done else []
    if outcome.reason:
        words.append(_(outcome.reason) + (f" ({outcome.detail})" if outcome.detail else ""))
    return f"{outcome.source}: {'; '.join(words)}"


async def _eval(configuration: Configuration, parsed: argparse.Namespace, _: Gettext) -> int:
    from bot.evaluation import measures, questions, report  # only this command needs them

    if parsed.top_k is not None and not 1 <= parsed.top_k <= measures.DEPTH:
        raise ConfigurationError(f"--top-k {parsed.top_k} cannot work: use 1 to {measures.DEPTH}")
    if parsed.min_score is not None and not 0 <= parsed.min_score <= 1:
        raise ConfigurationError(f"--min-score {parsed.min_score} cannot work: use 0 to 1")
    asked, faults = questions.read(await _text_of(parsed.questions))
    for fault in faults:
        print(_("line {n} is left out: {why}").format(n=fault.line, why=_(fault.reason)), file=sys.stderr)
    if not asked:
        raise ConfigurationError(f"{parsed.questions!r} holds no question")
    settings = configuration.settings
    async with open_bot(configuration) as bot:
        say = Progress()
        results = await measures.ask(bot.library, asked, top_k=parsed.top_k, min_score=parsed.min_score, progress=say)
        say.end()
        unknown = questions.unknown(asked, [str(document["source"]) for document in await bot.library.listing()])
    for fault in unknown:
        print(_("line {n}: {why}").format(n=fault.line, why=_(fault.reason)), file=sys.stderr)
    evaluation = report.Evaluation(results, faults, parsed.top_k or settings.top_k, unknown)
    _say("\n".join(report.lines(evaluation, _)))
    if parsed.report:
        now = settings.min_score if parsed.min_score is None else parsed.min_score
        await _write(
            parsed.report, report.page(evaluation, _, language=_shell_language(configuration.catalogs, environment()), min_score=now)
        )
        _say(_("The report is in {file}").format(file=parsed.report))
    return FAILED if faults else OK


async def _text_of(name: str) -> str:
    """What a file holds, or standard input. Raises ConfigurationError where it cannot be read."""
    try:
        return sys.stdin.read() if name == "-" else await asyncio.to_thread(Path(name).read_text, encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"{name!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{name!r} is not UTF-8 text: {error}") from error


async def _write(name: str, text: str) -> None:
    try:
        await asyncio.to_thread(Path(name).write_text, text, encoding="utf-8")
    except OSError as error:
        raise TransportError(f"{name!r} cannot be written: {error.strerror}") from error


async def _forget(configuration: Configuration, parsed: argparse.Namespace, _: Gettext) -> int:
    async with open_bot(configuration, warm=False) as bot:
        counts = await bot.delete_subject(parsed.user)
    if any(counts.values()):
        _say(_("Erased everything about {user}: {counts}").format(user=parsed.user, counts=json.dumps(dict(counts))))
    else:
        _say(_("Nothing was held about {user}. People have ids such as telegram:123 or console:local.").format(user=parsed.user))
    return OK


async def _export(configuration: Configuration, parsed: argparse.Namespace, _: Gettext) -> int:
    async with open_bot(configuration, warm=False) as bot:
        exported = await bot.export(parsed.user)
    text = _json(exported, "utf-8" if parsed.output else getattr(sys.stdout, "encoding", None) or "utf-8")
    if not parsed.output:
        _say(text)
        return OK
    try:
        _write_privately(Path(parsed.output), text + "\n")
    except OSError as error:
        raise TransportError(f"{parsed.output!r} cannot be written: {error.strerror}") from error
    return OK


def _json(value: Any, encoding: str) -> str:
    """As it is read best, or with escapes alone where `encoding` lacks a character of it: nothing may be lost."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(value, indent=2)
    return text


async def _import(configuration: Configuration, parsed: argparse.Namespace, _: Gettext) -> int:
    try:
        exported = json.loads(await _text_of(parsed.file))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{parsed.file!r} is not JSON: {error}") from error
    async with open_bot(configuration, warm=False) as bot:
        counts = await bot.restore(exported)
    _say(_("Took back what is held about {user}: {counts}").format(user=exported["user_id"], counts=json.dumps(counts)))
    return OK


def _write_privately(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


async def _check(configuration: Configuration, parsed: argparse.Namespace, _: Gettext) -> int:
    _say(f"configuration: ok ({len(configuration.sections)} sections, languages {', '.join(configuration.catalogs.languages)})")
    worst = OK
    async with open_bot(configuration, warm=False) as bot:
        _say(f"database: ok ({shown(configuration.settings.database_url)})")
        for name, check in (("model", _check_model), ("index", _check_index)):
            try:
                _say(f"{name}: ok ({await check(bot)})")
            except BotError as error:
                worst = max(worst, _exit_code(error))
                _say(f"{name}: {error.code}: {error}")
    return worst


async def _check_model(bot: Bot) -> str:
    """Ask it for a word: an address and a key may be well written, and wrong. No more than that word is waited for."""
    provider = bot.parts.find(Provider)
    async with AsyncExitStack() as stack:
        said = provider.stream(Prompt("", [{"role": "user", "content": "OK?"}], question="OK?"))
        if close := getattr(said, "aclose", None):
            stack.push_async_callback(close)
        await anext(aiter(said), None)
    return f"{provider.name} {provider.model}"


async def _check_index(bot: Bot) -> str:
    for path in bot.settings.documents:
        if not os.access(path, os.R_OK):
            raise ConfigurationError(f"BOT_DOCUMENTS: {path!r} is not there, or may not be read")
    await bot.library.warmup()
    documents = await bot.library.listing()
    return f"{len(documents)} documents, {sum(document['chunks'] for document in documents)} chunks"


class Progress:
    """Says how far long work is, on standard error: one line that changes in a terminal, else a line now and then."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._next = time.monotonic() + SECONDS_BETWEEN_PROGRESS

    async def __call__(self, text: str) -> None:
        """Say one short line."""
        if self._terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + SECONDS_BETWEEN_PROGRESS
            print(text, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Take the line away."""
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
