"""The conversations in the documentation are those that the process has today."""

from pathlib import Path

import pytest

from tests.e2e.telegram_transcript import PAGE, transcript


@pytest.mark.timeout(300)  # a second lies between any two messages, and a busy machine takes long to start
async def test_the_page_is_true(tmp_path: Path) -> None:
    """Where it is not any more: `python -m tests.e2e.telegram_transcript > docs/telegram.md`, and read what has changed."""
    assert PAGE.read_text(encoding="utf-8") == await transcript(tmp_path)
