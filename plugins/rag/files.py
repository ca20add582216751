"""Files as documents: which are taken from a folder, how they are called, and how they are read without surprises."""

import os
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plugins.rag.loaders import format_of

MOST_FILES = 200_000


@dataclass(frozen=True, slots=True)
class Found:
    """A file to read, or the reason for not reading it. `id` is unique, `label` is what people read."""

    path: Path
    id: str
    label: str
    problem: str = ""
    named: bool = True


class CannotRead(Exception):
    """A file that is not read; its text is the status of the outcome."""


def find(given: str | Path, cwd: Path) -> Iterator[Found]:
    """The files that a path means, in order: itself, or what is under a folder.

    In a folder, hidden files, special files and links that lead out of it are passed over; a file of no known format is named as such. A
    path that was given and cannot be read is called as it was given: whoever wrote it looks for that.
    """
    path = Path(os.path.abspath(cwd / given))  # without following links: labels stay as given
    if path.is_dir():
        for inner in _walk(path, path.resolve()):
            problem = "unreadable" if inner.is_dir() else "" if format_of(inner.name) else "unsupported"
            name, label = _names(inner, path, cwd)
            yield Found(inner, name, printable(Path(given)) if inner == path else label, problem, named=False)
    else:
        problem = _kind(path) or ("" if format_of(path.name) else "unsupported")
        name, label = _names(path, path.parent, cwd)
        yield Found(path, name, printable(Path(given)) if problem else label, problem)


def _kind(path: Path) -> str:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "not_found"
    except OSError:
        return "unreadable"
    return "" if stat.S_ISREG(mode) else "special"


def _walk(folder: Path, root: Path) -> Iterator[Path]:
    """Regular files in order of name. A folder that cannot be read is yielded itself."""
    try:
        with os.scandir(folder) as entries:
            inside = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        yield folder
        return
    for entry in inside:
        path = folder / entry.name
        if entry.name.startswith("."):
            continue
        if entry.is_symlink() and not _stays_inside(path, root):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(path, root)
        elif entry.is_file():
            yield path


def _stays_inside(link: Path, root: Path) -> bool:
    """A link to a file under the same root; a link to a folder could lead in circles and is not followed."""
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):
        return False
    return target.is_file() and target.is_relative_to(root)


def _names(path: Path, given: Path, cwd: Path) -> tuple[str, str]:
    """The id and the label: relative to where we stand, else from the last two folders that were named."""
    if path.is_relative_to(cwd):
        relative = printable(path.relative_to(cwd))
        return relative, relative
    inside = path.relative_to(given)
    return printable(path), printable(Path(*[part for part in given.parts if part != given.anchor][-2:], inside))


def printable(path: Path) -> str:
    """A path as people read it: one form of each accent, and no bytes that are no text."""
    text = path.as_posix().encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return unicodedata.normalize("NFC", " ".join(text.split("\n")))


def read(path: Path, *, most: int) -> bytes:
    """The bytes of a regular file. Raises CannotRead with `not_found`, `unreadable`, `special` or `too_big`; never waits for a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError as error:
        raise CannotRead("not_found") from error
    except OSError as error:
        raise CannotRead("unreadable") from error
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise CannotRead("special")
        if about.st_size > most:
            raise CannotRead("too_big")
        try:
            data = file.read(most + 1)
        except OSError as error:
            raise CannotRead("unreadable") from error
    if len(data) > most:
        raise CannotRead("too_big")
    return data
