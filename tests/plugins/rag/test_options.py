"""Options are checked when the retriever is made, and the error names the option, its value and what is allowed."""

from pathlib import Path

import pytest

from plugins.rag import Document, RagError, create_rag


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("chunk_size", 0),
        ("chunk_size", 10.5),
        ("chunk_size", True),
        ("chunk_overlap", -1),
        ("chunk_overlap", 251),
        ("top_k", 0),
        ("top_k", "3"),
        ("min_score", 1.5),
        ("min_score", -0.1),
        ("max_file_bytes", 0),
        ("retry_delay_ms", -1),
        ("persist_path", "index.txt"),
        ("persist_path", 5),
        ("cwd", 5),
        ("embeddings", "bert"),
        ("pdf", "pypdf"),
        ("on_error", 1),
        ("documents", "docs"),
        ("documents", [1]),
        ("documents", [Document("a", "x"), Document("a", "y")]),
    ],
)
def test_an_option_that_cannot_work_is_refused(name: str, value: object) -> None:
    """INVALID_OPTIONS, before anything is read."""
    with pytest.raises(RagError, match=name) as raised:
        create_rag(**{name: value})  # type: ignore[arg-type]

    assert raised.value.code == "INVALID_OPTIONS"


def test_a_small_chunk_has_a_small_overlap() -> None:
    """The default overlap is 150, at most a quarter of the size."""
    assert create_rag()._options.cutting.overlap == 150
    assert create_rag(chunk_size=200)._options.cutting.overlap == 50
    assert create_rag(chunk_size=400, chunk_overlap=100)._options.cutting.overlap == 100


def test_making_one_reads_nothing(tmp_path: Path) -> None:
    """Synchronous and cheap: a folder that is not there is no error yet, and no file is made."""
    create_rag(documents=["no such folder"], persist_path="index.db", cwd=tmp_path)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [{"top_k": 0}, {"min_score": 2}, {"where": "docs"}])
async def test_the_options_of_a_question_are_checked(options: dict[str, object]) -> None:
    """The same words as those of `create_rag`."""
    rag = create_rag(documents=[Document("a", "texto")])

    with pytest.raises(RagError) as raised:
        await rag.retrieve("texto", **options)  # type: ignore[arg-type]

    assert raised.value.code == "INVALID_OPTIONS"
