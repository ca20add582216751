"""The composition root: the only module that constructs. `async with open_bot(environment) as bot`."""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from bot.accepting import Joins
from bot.context import User
from bot.database import open_database, password
from bot.dispatch import Dispatcher
from bot.errors import BotError, ConfigurationError
from bot.fence import SubjectFence
from bot.handling import Core
from bot.i18n import LOCALES, Catalogs
from bot.inbox import JobQueue, Queue, now_ms
from bot.log import Counters
from bot.personal_data import Everyone, Profile, move_profile, own_data
from bot.ports import Assistant, Database, Library, Provider, Reader, Sends, Transaction
from bot.registry import Lifespan, Parts, PersonalData, Registry, fault, load
from bot.settings import TOML, Section, Settings, from_toml, over, read, refuse_unknown
from bot.transports.console import PERSON, Console, erase_files, typed
from bot.transports.console_seat import is_terminal
from bot.values import Update

log = logging.getLogger(__name__)
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a start is made of: all that plugins registered, the settings, checked, and the catalogs."""

    registry: Registry
    settings: Settings
    sections: Mapping[type[Section], Section]
    catalogs: Catalogs

    @property
    def secrets(self) -> list[str]:
        """Every value that must never reach the log."""
        values = [value for section in self.sections.values() for value in dict(section).values()]
        held = [value.get_secret_value() for value in values if hasattr(value, "get_secret_value")]
        return [secret for secret in (password(self.settings.database_url), *held) if secret]


def configure(environment: Mapping[str, str], *, registry: Registry | None = None, toml: Path = Path(TOML)) -> Configuration:
    """Read everything that can be wrong before anything is opened. Raises ConfigurationError in one line."""
    registry = registry or load()
    values = over(from_toml(toml, registry.sections), environment)
    refuse_unknown(values, registry.sections)
    sections = {cls: read(cls, values) for cls in registry.sections}
    settings = sections[Settings]
    assert isinstance(settings, Settings)
    catalogs = Catalogs.load([LOCALES, *registry.locale_directories], default=settings.default_language)
    return Configuration(registry, settings, sections, catalogs)


class Bot:
    """A bot whose parts are open. `run` makes it answer what its transports accept."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.dispatcher = Dispatcher(core)

    @property
    def ai(self) -> Assistant:
        """The turn, memory and documents: what `ctx.ai` is."""
        return self.core.ai

    @property
    def library(self) -> Library:
        """The documents."""
        return self.core.library

    @property
    def database(self) -> Database:
        """The open database."""
        return self.core.database

    @property
    def registry(self) -> Registry:
        """All that was registered."""
        return self.core.registry

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.core.settings

    @property
    def catalogs(self) -> Catalogs:
        """The catalogs, plugins' included."""
        return self.core.catalogs

    @property
    def parts(self) -> Parts:
        """What factories of parts are given."""
        return self.core.parts

    def user(self, user_id: str) -> User:
        """A person's profile, from outside a handler."""
        return Profile(self.core.database, self.core.fence, user_id, clock=self.core.clock)

    async def delete_subject(self, user_id: str) -> Mapping[str, int]:
        """Right to erasure: everything held about a person; how many of each kind left."""
        return await self.core.people.erase(user_id)

    async def export(self, user_id: str) -> dict[str, Any]:
        """Everything held about a person, as plain JSON values."""
        return await self.core.people.export(user_id)

    async def restore(self, exported: Any) -> dict[str, int]:
        """Take back what `export` gave; how many rows of each kind came. Raises ConfigurationError for anything else."""
        return await self.core.people.restore(exported)

    async def statistics(self) -> dict[str, int]:
        """Counts, never contents: what plugins register (their names are messages of the catalogs), then this process's counters."""
        counted = {name: await count(self.core.database) for name, count in self.core.registry.statistics.items()}
        return {**counted, **self.core.counters.snapshot()}

    def attach(self, transport: Sends) -> None:
        """Let replies leave by a transport."""
        self.core.transports[transport.name] = transport

    async def accept(self, update: Update) -> bool:
        """Store an update; False where it came before."""
        return await self.dispatcher.accept(update)

    async def accept_all(self, updates: Sequence[Update], *, joins: Joins | None = None) -> None:
        """Store several updates, all or none; `joins` puts those together that are parts of one."""
        await self.dispatcher.accept_all(updates, joins=joins)

    @property
    def languages(self) -> Sequence[str]:
        """The languages that there are catalogs for."""
        return self.core.catalogs.languages

    async def move_chat(self, old: str, new: str) -> None:
        """A group's id has changed: all that is kept about it goes along, in one transaction. Harmless where it is said twice."""
        core = self.core
        async with core.database.transaction() as tx:
            for move in core.registry.chat_moves:
                await move(tx, old, new)
            await move_profile(tx, old, new)
            await core.inbox.move(tx, old, new, lambda payload: {**payload, "chat_key": new, "room": new})
            await core.outbox.move(tx, old, new, lambda payload: {**payload, "reply_to": None, "question": None})
        core.inbox.notify()
        core.outbox.notify()

    async def tell(self, tx: Transaction, entry_id: str, *, transport: str, chat_key: str, text: str) -> None:
        """Say something that nobody asked for, once for its id."""
        await self.core.outbox.put(tx, entry_id, kind="reply", via=transport, line=chat_key, payload={"text": text})
        self.core.outbox.notify()

    async def warm_up(self) -> None:
        """Build the index, and whatever else the retrievers build. What fails is logged: the first question tries again."""
        try:
            await self.core.ai.warmup()
        except Exception as error:
            log.error("warm-up of the documents failed: %s", error, exc_info=not isinstance(error, BotError))
            self.core.counters.add("warmup_failed")

    async def settled(self, chat_key: str) -> None:
        """Return when everything in a chat has been answered."""
        await self.dispatcher.settled(chat_key)

    async def run(self) -> None:
        """Answer until cancelled."""
        await self.dispatcher.run()


@asynccontextmanager
async def open_bot(
    configuration: Configuration, *, provider: Provider | None = None, clock: Callable[[], int] = now_ms, warm: bool = True
) -> AsyncIterator[Bot]:
    """A bot with everything open, and closed at the end. `provider` takes the place of the configured model.

    Raises ConfigurationError and StorageError. A warm-up that fails is logged, not fatal: the first question tries again.
    """
    registry, settings = configuration.registry, configuration.settings
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(
            open_database(settings.database_url, agent_id=settings.agent_id, migrations=registry.migration_sets)
        )
        core = _compose(configuration, database, provider, clock)
        bot = Bot(core)
        core.bot = bot
        for lifespan in registry.lifespans:
            await stack.enter_async_context(_Opened(lifespan, core.parts))
        await core.people.finish()
        if warm:
            await bot.warm_up()
        yield bot


class _Opened:
    """A plugin's lifespan; what it raises names the plugin. What comes from inside, from the process itself, passes as it is."""

    def __init__(self, lifespan: Lifespan, parts: Parts) -> None:
        self._lifespan = lifespan
        self._parts = parts

    async def __aenter__(self) -> None:
        try:
            self._opened = self._lifespan.open(self._parts)
            await self._opened.__aenter__()
        except Exception as error:  # a plugin's own code can raise anything
            raise fault(self._lifespan.plugin, "cannot start", error) from error

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        try:
            return await self._opened.__aexit__(kind, error, traceback)
        except Exception as failure:
            if failure is error:
                raise
            raise fault(self._lifespan.plugin, "cannot stop", failure) from failure


def _compose(configuration: Configuration, database: Database, provider: Provider | None, clock: Callable[[], int]) -> Core:
    registry, catalogs = configuration.registry, configuration.catalogs
    fence = SubjectFence(database)
    inbox, outbox, job_rows = (Queue(database, table, clock=clock) for table in ("inbox", "outbox", "jobs"))
    transports: dict[str, Sends] = {}
    own = [*own_data([inbox, outbox, job_rows], clock=clock), _terminal_files(configuration.settings.data_dir, transports)]
    registered = {data.name: data for data in [*own, *registry.personal.values()]}
    people = Everyone(database, fence, registered, clock=clock)
    jobs = JobQueue(job_rows, kinds=registry.jobs)
    counters = Counters()
    built: dict[type[Any], Any] = {} if provider is None else {Provider: provider}
    building: list[type[Any]] = []

    def find(port: type[Any]) -> Any:
        if port not in built:
            if port in building or port not in registry.parts:
                raise ConfigurationError(f"no plugin provides {port.__name__}, or it needs itself")
            building.append(port)
            built[port] = registry.parts[port](parts)
            building.remove(port)
        return built[port]

    async def tell(tx: Transaction, chat_key: str, user_id: str, text: str) -> None:
        platform = chat_key.partition(":")[0]
        if platform in transports or is_terminal(platform):  # a terminal beside this one tells it, or the next one in its place
            await outbox.put(tx, uuid.uuid4().hex, kind="reply", via=platform, line=chat_key, user_id=user_id, payload={"text": text})
            outbox.notify()

    parts = Parts(
        settings=configuration.settings,
        sections=configuration.sections,
        database=database,
        registry=registry,
        fence=fence,
        jobs=jobs,
        counters=counters,
        translate=lambda lang, message: catalogs.gettext(lang)(message),
        erase=people.erase,
        clock=clock,
        find=find,
        tell=tell,
    )
    return Core(
        settings=configuration.settings,
        registry=registry,
        database=database,
        fence=fence,
        inbox=inbox,
        outbox=outbox,
        jobs=jobs,
        people=people,
        catalogs=catalogs,
        counters=counters,
        clock=clock,
        ai=find(Assistant),
        library=find(Library),
        parts=parts,
        bot=None,
        transports=transports,
    )


def _terminal_files(data_dir: Path, transports: Mapping[str, Sends]) -> PersonalData:
    """What the terminal writes for its one person: exports, and the history of what was typed."""

    async def export(reader: Reader, user_id: str) -> list[str]:
        return await asyncio.to_thread(typed, data_dir) if user_id == PERSON else []

    async def erase(tx: Transaction, user_id: str) -> int:
        return 0

    async def clean(user_id: str) -> int:
        if user_id != PERSON:
            return 0
        console = next((transport for transport in transports.values() if isinstance(transport, Console)), None)
        return await console.erase_files() if console else await asyncio.to_thread(erase_files, data_dir)

    return PersonalData("files", (), export, erase, clean)
