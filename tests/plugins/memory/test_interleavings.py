"""Whatever is done in whatever order: erased never returns, the cap holds, and what says the same is one row."""

import asyncio
import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bot import ExtractOptions, MemoryOptions
from plugins.memory import OwnMemory, create_memory
from plugins.memory.facts import identity
from tests.plugins.memory.conftest import Clock, Script

PEOPLE = ("ana", "leo")
FACTS = ("Vive en Bogotá", "vive en bogotá.", "Tiene un perro", "¡TIENE un perro!", "uno", "dos", "tres", "cuatro", "cinco", "?!")
MOST = 4
DAY = 86_400_000

people = st.sampled_from(PEOPLE)
facts = st.sampled_from(FACTS)


class Interleavings(RuleBasedStateMachine):
    """Remembers, extracts, forgets, pauses and lets time pass, extractions standing half-way as long as the machine likes."""

    @initialize()
    def start(self) -> None:
        self.runner = asyncio.Runner()
        self.clock = Clock()
        self.script = Script()
        self.gates: list[tuple[str, asyncio.Task[list[str]], asyncio.Event]] = []
        self.may_hold: dict[str, set[str]] = {who: set() for who in PEOPLE}
        self.paused: set[str] = set()
        self.memory = self.run(self.open())

    async def open(self) -> OwnMemory:
        options = MemoryOptions(max_facts=MOST, auto_extract=ExtractOptions(debounce_ms=600_000), resolve=True)
        return create_memory(options, provider=self.script, clock=self.clock)

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    @rule(who=people, some=st.lists(facts, min_size=1, max_size=5), manual=st.booleans(), ttl=st.sampled_from([None, "1d", "3d"]))
    def remember(self, who: str, some: list[str], manual: bool, ttl: str | None) -> None:
        new = self.run(self.memory.remember(who, some, ttl=ttl, source="manual" if manual else "auto"))
        if who in self.paused:
            assert new == []
        else:
            self.may_hold[who].update(map(identity, some))

    @rule(who=people, fact=facts)
    def begin_extraction(self, who: str, fact: str) -> None:
        """The model is asked, and does not answer yet."""

        async def begin() -> None:
            gate = asyncio.Event()
            self.script.answers, self.script.calls = (json.dumps({"facts": [fact]}),), []
            self.script.gate, self.script.asked = gate, asyncio.Event()
            task = asyncio.create_task(self.memory.extract(who, fact, ""))
            asked = asyncio.create_task(self.script.asked.wait())
            await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
            if not task.done():
                self.gates.append((who, task, gate))

        self.run(begin())
        if who not in self.paused:
            self.may_hold[who].add(identity(fact))

    @rule()
    def end_extraction(self) -> None:
        """The model answers, whatever happened meanwhile."""
        if self.gates:
            _, task, gate = self.gates.pop(0)

            async def end() -> None:
                gate.set()
                await task

            self.run(end())

    @rule(who=people, fact=facts)
    def forget_one(self, who: str, fact: str) -> None:
        self.run(self.memory.forget(who, fact))
        if not any(one == who for one, _, _ in self.gates):
            self.may_hold[who].discard(identity(fact))

    @rule(who=people)
    def forget_all(self, who: str) -> None:
        """From here on nothing that was held, or being found, may be held."""
        self.run(self.memory.forget(who))
        self.may_hold[who].clear()
        self.end_extraction()

    @rule(who=people, pause=st.sampled_from([True, False, False]))
    def pause_or_resume(self, who: str, pause: bool) -> None:
        self.run(self.memory.choose(who, paused=pause))
        (self.paused.add if pause else self.paused.discard)(who)

    @rule(days=st.sampled_from([0.5, 1, 2]))
    def pass_time(self, days: float) -> None:
        self.clock.forward(days=days)
        if days == 2:
            self.run(self.memory.tidy())

    @invariant()
    def what_is_held_may_be(self) -> None:
        if not hasattr(self, "memory"):
            return
        for who in PEOPLE:
            held = self.run(self.memory.facts(who))
            keys = [identity(fact.text) for fact in held]
            assert len(keys) == len(set(keys)) <= MOST
            assert set(keys) <= self.may_hold[who]
            assert all(fact.expires_at is None or fact.expires_at > self.clock.now for fact in held)
            stamps = [fact.updated_at for fact in held]
            assert stamps == sorted(stamps)

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            while self.gates:
                self.end_extraction()
            self.run(self.memory.aclose())
            self.runner.close()


Interleavings.TestCase.settings = settings(max_examples=60, stateful_step_count=20, deadline=None, derandomize=True)
TestInterleavings = Interleavings.TestCase
