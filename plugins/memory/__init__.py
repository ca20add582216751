"""Long-term memory: short facts about a person or a chat room, kept across chats and restarts, with the person's say over them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

from bot import Counters, Database, Embedder, Job, MemoryOptions, Parts, Provider, Reader, Recall, Registry, StorageError, memory_options
from bot import marked as _

from . import changes, queue, store, tools
from .alone import MIGRATIONS, NoFence, OwnDatabase, TaskJobs
from .extractor import JOB
from .meaning import Meaning
from .restoring import Restoring
from .service import Memory
from .telling import Notices

TIDY_SECONDS = 600.0


def register(registry: Registry) -> None:
    """Add memory to the bot: the `Recall` part, its tables, its background work and the model's tools."""
    restoring, meanings = Restoring(), list[Meaning]()

    def build(parts: Parts) -> Memory:
        meanings.append(Meaning(lambda: cast(Embedder, parts.find(cast(type[Any], Embedder)))))
        memory = _build(parts, meanings[-1])
        restoring.options = memory.options or MemoryOptions()
        return memory

    async def clean(user_id: str) -> int:
        for meaning in meanings:
            meaning.clear()
        return 0  # vectors of the same facts as the rows that left

    registry.part(Memory, build)
    registry.part(cast(type[Any], Recall), lambda parts: parts.find(Memory))
    registry.migrations(MIGRATIONS.owner, MIGRATIONS.directory)
    registry.personal_data("facts", tables=("facts",), export=store.export, erase=store.erase, clean=clean, restore=restoring.facts)
    registry.personal_data(
        "replaced_facts", tables=("memory_changes",), export=changes.export, erase=changes.erase, restore=restoring.changes
    )
    registry.personal_data(
        "memory",
        tables=("memory_subjects", "memory_queue", "memory_budget"),
        export=queue.export,
        erase=queue.erase,
        restore=restoring.choices,
    )
    registry.job(JOB, _run)
    registry.on_chat_moved(store.move)
    registry.on_chat_moved(changes.move)
    registry.statistic(_("Facts"), _count)
    registry.lifespan(_tidying)
    tools.register(registry)


def create_memory(
    options: MemoryOptions | bool | None = None,
    *,
    provider: Provider | None = None,
    database: Database | None = None,
    counters: Counters | None = None,
    clock: Callable[[], int] | None = None,
) -> "OwnMemory":
    """Memory by hand, with no process around it. Cheap: nothing is opened until it is used.

    `database` has to hold memory's tables (`open_database(url, migrations=[plugins.memory.MIGRATIONS])`); None is one in memory, of its
    own. `provider` is who extracts. Close it with `await memory.aclose()`, or use it as `async with create_memory() as memory`.
    """
    return OwnMemory(memory_options(options), provider=provider, database=database, counters=counters, clock=clock)


class OwnMemory(Memory):
    """A Memory that opened what it stands on, and closes it."""

    def __init__(
        self,
        options: MemoryOptions | None,
        *,
        provider: Provider | None,
        database: Database | None,
        counters: Counters | None,
        clock: Callable[[], int] | None,
    ) -> None:
        self._own = None if database is not None else OwnDatabase()
        self._tasks = TaskJobs(self.run)
        where: Database = database if database is not None else cast(Database, self._own)
        super().__init__(
            options,
            database=where,
            jobs=self._tasks,
            fence=NoFence(where),
            provider=lambda: provider,
            counters=counters or Counters(),
            clock=clock or store.now_ms,
        )

    async def __aenter__(self) -> "OwnMemory":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Cancel extraction that waits or runs, and close the database if it is its own."""
        await self._tasks.aclose()
        if self._own is not None:
            await self._own.aclose()


def _build(parts: Parts, meaning: Meaning) -> Memory:
    chosen = parts.registry.memory_options
    options = _of_settings(parts) if chosen is None else memory_options(chosen)
    return Memory(
        options,
        database=parts.database,
        jobs=parts.jobs,
        fence=parts.fence,
        provider=lambda: cast(Provider, parts.find(cast(type[Any], Provider))),
        counters=parts.counters,
        clock=parts.clock,
        score=meaning,
        notify=Notices(parts, options),
    )


def _of_settings(parts: Parts) -> MemoryOptions | None:
    settings = parts.settings
    if not settings.memory:
        return None
    return MemoryOptions(
        max_facts=settings.memory_max_facts,
        ttl=settings.memory_ttl,
        auto_extract=settings.memory_auto_extract,
        inject_in_groups=settings.memory_inject_in_groups,
        prompt_tokens=settings.memory_prompt_tokens,
        resolve=settings.memory_resolve,
        notices=settings.memory_notices,
    )


async def _run(parts: Parts, job: Job) -> None:
    await cast(Memory, parts.find(Memory)).run(job)


async def _count(reader: Reader) -> int:
    return await store.count(reader)


@asynccontextmanager
async def _tidying(parts: Parts) -> AsyncIterator[None]:
    """Removes what has expired, at the start and every ten minutes."""
    memory = cast(Memory, parts.find(Memory))

    async def again_and_again() -> None:
        while True:
            with suppress(StorageError):  # a locked or full database may be well again next time
                await memory.tidy()
            await asyncio.sleep(TIDY_SECONDS)

    task = asyncio.create_task(again_and_again())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


__all__ = ["MIGRATIONS", "Memory", "OwnMemory", "create_memory", "register"]
