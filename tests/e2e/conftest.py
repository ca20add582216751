"""A folder of its own for each test that runs the bot."""

from pathlib import Path

import pytest

from tests.e2e.child import DOCUMENTS, Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An empty folder but for two small documents."""
    (tmp_path / "docs").mkdir()
    for name, text in DOCUMENTS.items():
        (tmp_path / "docs" / name).write_text(text, encoding="utf-8")
    return Place(tmp_path)
