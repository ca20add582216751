"""What is kept is whole, or is known not to be."""

import numpy as np
import pytest

from plugins.rag.storage import StoredChunk, StoredDocument, checksum, packed, sealed, unpacked


def test_a_vector_comes_back_as_it_was() -> None:
    """And not at all where a bit has flipped, or some are missing."""
    vector = np.linspace(-1, 1, 24, dtype=np.float32)
    data = packed(vector)

    back = unpacked(data)
    assert back is not None
    np.testing.assert_array_equal(back, vector)
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 1
        assert unpacked(bytes(flipped)) is None
    assert unpacked(data[:-4]) is None
    assert unpacked(b"") is None


@pytest.mark.parametrize("field", ["label", "state", "digest", "recipe", "body", "metadata"])
def test_the_checksum_covers_the_document(field: str) -> None:
    """Everything that an answer or the next ingestion depends on; not its owner, whose id can be erased."""
    from dataclasses import replace

    document = sealed(StoredDocument("a", "a.md", "folder", owner="test:ana"), [])

    assert checksum(replace(document, **{field: "x"}), []) != document.checksum  # type: ignore[arg-type]
    assert checksum(replace(document, owner=""), []) == document.checksum


@pytest.mark.parametrize("field", ["position", "section", "text", "metadata", "digest"])
def test_the_checksum_covers_the_chunks(field: str) -> None:
    """Each field of each, and how many there are."""
    from dataclasses import replace

    document, chunk = StoredDocument("a", "a.md", "folder"), StoredChunk("a", 0, "s", "texto", "{}", "d")
    whole = checksum(document, [chunk])

    assert checksum(document, [replace(chunk, **{field: 7 if field == "position" else "x"})]) != whole  # type: ignore[arg-type]
    assert checksum(document, [chunk, chunk]) != whole
    assert checksum(document, []) != whole
