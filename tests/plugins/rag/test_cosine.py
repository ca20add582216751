"""Every row with a question, on one core or several."""

import numpy as np
import pytest

from plugins.rag import cosine
from plugins.rag.cosine import cosines


def test_one_question_and_several_have_the_same_cosines() -> None:
    """A row for each question, as if it were asked alone."""
    rows = np.array([[1, 0], [0.6, 0.8], [0, 1]], dtype=np.float32)
    asked = np.array([[1, 0], [0, 1]], dtype=np.float32)

    together = cosines(rows, asked)

    np.testing.assert_allclose(together[:, 0], cosines(rows, asked[0]))
    np.testing.assert_allclose(together[:, 1], [0, 0.8, 1])


@pytest.mark.parametrize("count", [1, 2, 3, 5, 1000, 1001])
@pytest.mark.parametrize("parts", [2, 3, 4])
def test_cores_share_the_rows_and_change_no_result(count: int, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is done once, by whichever core, and its cosine is that of one core."""
    monkeypatch.setattr(cosine, "SHARED", 0)
    monkeypatch.setattr(cosine, "CACHED", 0)
    rows = np.random.default_rng(1).standard_normal((count, 24), dtype=np.float32)

    shared = cosines(rows, rows[count // 2], parts=parts)

    np.testing.assert_array_equal(shared, cosines(rows, rows[count // 2], parts=1))
    np.testing.assert_allclose(shared, rows @ rows[count // 2], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("asked", "used"), [("1", 1), ("", None), ("many", None), ("0", 1)])
def test_as_many_cores_as_arithmetic_may_use(asked: str, used: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """OMP_NUM_THREADS bounds it, as it bounds every library of arithmetic; what is no number does not."""
    monkeypatch.setenv("OMP_NUM_THREADS", asked)

    found = cosine.cores.__wrapped__()

    assert found == used if used else 1 <= found <= cosine.MOST_CORES
