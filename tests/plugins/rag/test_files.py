"""Which files a path means, what they are called, and that none holds anything up."""

import os
from pathlib import Path

import pytest

from plugins.rag.files import CannotRead, find, read


def labels(given: str, cwd: Path) -> list[str]:
    return [found.label for found in find(given, cwd)]


def test_a_folder_means_the_files_under_it(tmp_path: Path) -> None:
    """Recursively and in order, with labels relative to where we stand; what has no reader is named as such."""
    (tmp_path / "docs/es").mkdir(parents=True)
    for name in ("docs/b.md", "docs/a.txt", "docs/es/c.pdf", "docs/logo.png"):
        (tmp_path / name).write_text("x")

    found = list(find("docs", tmp_path))

    assert [(one.label, one.problem) for one in found] == [
        ("docs/a.txt", ""),
        ("docs/b.md", ""),
        ("docs/es/c.pdf", ""),
        ("docs/logo.png", "unsupported"),
    ]


def test_hidden_files_and_ways_out_are_passed_over(tmp_path: Path) -> None:
    """No dot files, no links that lead out of the folder or in circles, no pipes."""
    docs, outside = tmp_path / "docs", tmp_path / "outside"
    docs.mkdir()
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    (docs / ".hidden.md").write_text("x")
    (docs / "in.md").write_text("x")
    (docs / "out.md").symlink_to(outside / "secret.md")
    (docs / "outfolder").symlink_to(outside)
    (docs / "loop").symlink_to(docs)
    (docs / "link.md").symlink_to(docs / "in.md")
    os.mkfifo(docs / "pipe.md")

    assert labels("docs", tmp_path) == ["docs/in.md", "docs/link.md"]


def test_a_path_elsewhere_is_called_by_its_last_folders(tmp_path: Path) -> None:
    """What is not under the current folder is shown by what was named, not by the whole machine's tree."""
    (tmp_path / "srv/data/docs/es").mkdir(parents=True)
    (tmp_path / "srv/data/docs/es/faq.md").write_text("x")
    (tmp_path / "home").mkdir()

    assert labels("../srv/data/docs", tmp_path / "home") == ["data/docs/es/faq.md"]
    assert labels("../srv/data/docs/es/faq.md", tmp_path / "home") == ["docs/es/faq.md"]


def test_two_files_of_one_name_are_two(tmp_path: Path) -> None:
    """Ids are unique where labels need not be."""
    for folder in ("a/x/docs", "b/x/docs", "home"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "faq.md").write_text("x")

    found = [one for root in ("../a/x/docs", "../b/x/docs") for one in find(root, tmp_path / "home")]

    assert len({one.id for one in found}) == 2
    assert len({one.label for one in found}) == 1


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A path that leads nowhere is one finding with its reason."""
    assert [(one.label, one.problem) for one in find("no.md", tmp_path)] == [("no.md", "not_found")]


def test_what_cannot_be_read_is_called_as_it_was_given(tmp_path: Path) -> None:
    """A slip in a path is found by reading the path, not what is left of it."""
    missing, unknown = tmp_path / "srv/no.md", tmp_path / "a/b/c/tool.exe"
    unknown.parent.mkdir(parents=True)
    unknown.write_bytes(b"MZ")

    assert labels(str(missing), tmp_path / "home") == [str(missing)]
    assert labels(str(unknown), tmp_path / "home") == [str(unknown)]
    assert labels("../nowhere", tmp_path) == ["../nowhere"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """A named pipe is refused at once, by name too."""
    os.mkfifo(tmp_path / "pipe.md")

    assert [one.problem for one in find("pipe.md", tmp_path)] == ["special"]
    with pytest.raises(CannotRead, match="special"):
        read(tmp_path / "pipe.md", most=100)


def test_a_sparse_giant_is_not_read(tmp_path: Path) -> None:
    """4 GB that take no room on the disk are refused by their size."""
    giant = tmp_path / "giant.txt"
    with giant.open("wb") as file:
        file.truncate(4 << 30)

    with pytest.raises(CannotRead, match="too_big"):
        read(giant, most=20 << 20)


def test_names_that_are_no_text_have_a_label(tmp_path: Path) -> None:
    """A file whose name is no UTF-8 is read, under a label that can be stored and shown."""
    name = os.fsdecode(b"a\xff.txt")
    (tmp_path / name).write_text("x")

    (found,) = find(str(tmp_path), tmp_path)

    assert found.label == "a\ufffd.txt"
    assert read(found.path, most=10) == b"x"
