"""A reader in a process of its own, which can be killed: what a hostile file makes a library do, only that process pays for."""

import asyncio
import os
import signal
import sys
from pathlib import Path

MEMORY_BYTES = 1 << 30
SECONDS = 30.0


async def answer(script: Path, reader: str, data: bytes, *, seconds: float = SECONDS, memory: int = MEMORY_BYTES) -> bytes | None:
    """What a script prints for this data; None where its time was over. Nothing, or half of an answer, where it crashed.

    It is called as `script READER MEMORY_BYTES CPU_SECONDS`; the limits are for it to set, the time is kept here too.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(script),
        reader,
        str(memory),
        str(int(seconds) + 1),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            said, _ = await process.communicate(data)
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            _kill(process)
            await process.wait()
    return None if process.returncode == -signal.SIGXCPU else said


def _kill(process: asyncio.subprocess.Process) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
