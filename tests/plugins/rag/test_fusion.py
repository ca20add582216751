"""How two legs make one order, and when nothing fits."""

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.rag.fusion import COMPANION, RELEVANT_SHARE, best, carried, fitting, fuse, joined

ALL = np.ones(3, dtype=bool)
SLOTS = np.array([0, 1, 2])


def test_a_leg_that_is_sure_moves_the_order() -> None:
    """Scores are fused, not ranks: a chunk that one leg puts far ahead wins over one that the other puts just ahead."""
    fused = fuse(np.array([9.0, 1.0, 0.0]), np.array([0.80, 0.81, 0.1]), ALL, np.array([1.0, 0.0, 0.0]))

    assert int(np.argmax(fused)) == 0


def test_a_leg_that_tells_nothing_apart_says_nothing() -> None:
    """Equal scores give no weight to anybody, and no division by zero."""
    fused = fuse(np.zeros(3), np.array([0.1, 0.9, 0.5]), ALL, np.zeros(3))

    assert list(np.argsort(-fused)) == [1, 2, 0]


def test_words_weigh_less_where_they_say_little() -> None:
    """A name that a question in another language shares with a chunk does not overrule what the question means."""
    lexical, dense = np.array([1.0, 0.0, 0.2]), np.array([0.70, 0.83, 0.1])

    assert int(np.argmax(fuse(lexical, dense, ALL, 0.9 * lexical))) == 0
    assert int(np.argmax(fuse(lexical, dense, ALL, 0.1 * lexical))) == 1


def test_all_of_a_question_counts_beside_one_rare_word() -> None:
    """Of two chunks that mean about the same, and that words put side by side, the one that holds more of the question comes first."""
    lexical, dense = np.array([5.0, 5.0, 0.0]), np.array([0.80, 0.805, 0.1])

    assert int(np.argmax(fuse(lexical, dense, ALL, np.array([0.9, 0.4, 0.0])))) == 0
    assert int(np.argmax(fuse(lexical, dense, ALL, np.array([0.9, 0.9, 0.0])))) == 1


def test_removed_chunks_do_not_stretch_the_scale() -> None:
    """The extremes are those of the live chunks."""
    live = np.array([True, True, False])

    fused = fuse(np.array([1.0, 2.0, 100.0]), np.array([0.2, 0.3, 0.9]), live, np.array([0.1, 0.2, 1.0]))

    assert fused[1] == 1
    assert fused[0] == 0


def test_the_best_are_in_order_and_the_older_first_of_equals() -> None:
    """Best first; equals by age; never one that is not allowed."""
    order = np.array([5.0, 7.0, 7.0, 1.0] + [0.0] * 20)
    allowed = np.ones(24, dtype=bool)
    allowed[3] = False

    assert list(best(order, allowed, 3)) == [1, 2, 0]
    assert list(best(order, np.zeros(24, dtype=bool), 3)) == []


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=600),
    st.sampled_from([1, 2, 5, 8, 9, 40]),
    st.randoms(use_true_random=False),
    st.sampled_from([1.0, 0.1, 0.0]),
)
@settings(max_examples=80, deadline=None)
def test_the_best_are_those_of_sorting_everything(values: list[int], count: int, chance: Random, kept: float) -> None:
    """However many slots there are, whatever is allowed, with equals at every place."""
    order = np.array(values, dtype=np.float32)
    allowed = np.array([chance.random() < kept for _ in values], dtype=bool)
    expected = sorted(np.flatnonzero(allowed), key=lambda slot: (-order[slot], slot))[:count]

    assert list(best(order, allowed, count)) == expected


def test_nothing_fits_where_no_chunk_holds_enough() -> None:
    """Just below the bar there is nothing, at the bar there is something."""
    below, at = np.full(3, RELEVANT_SHARE - 0.01), np.array([RELEVANT_SHARE, 0.0, RELEVANT_SHARE * COMPANION[0]])

    assert list(fitting(SLOTS, below, None, None)) == []
    assert list(fitting(SLOTS, at, None, None)) == [0, 2]


def test_an_embedder_without_a_known_bar_lets_everything_through() -> None:
    """Where it is not known which cosine means anything, the asker's `min_score` decides alone."""
    assert list(fitting(SLOTS, np.zeros(3), np.array([0.9, 0.1, 0.2]), None)) == [0, 1, 2]


def test_words_lift_the_cosine() -> None:
    """With a bar, a chunk that holds the question's words needs less of a cosine, and one that holds none needs it all."""
    bar = 0.9

    assert list(fitting(SLOTS, np.array([1.0, 0.0, 0.0]), np.array([0.81, 0.89, 0.5]), bar)) == [0, 1]
    assert list(fitting(SLOTS, np.zeros(3), np.array([0.89, 0.88, 0.5]), bar)) == []


def test_what_was_asked_before_counts_half() -> None:
    """And what was asked before that a quarter."""
    own, last, first = np.array([4.0, 0, 0]), np.array([0, 4.0, 0]), np.array([0, 0, 4.0])

    assert list(carried(own, [last, first])) == [4, 2, 1]


def test_what_was_asked_before_never_weighs_more_than_the_question() -> None:
    """A long question before a short one does not drown it; a question without a word of its own has only what came before."""
    long = np.array([0, 30.0, 3.0])

    assert list(carried(np.array([2.0, 0, 0]), [long])) == [2, 2, 0.2]
    assert list(carried(np.zeros(3), [long])) == [0, 15, 1.5]


def test_shares_are_joined_by_the_weight_of_their_questions() -> None:
    """A chunk that holds all of both holds 1; one that holds only what was asked before, less than half of it."""
    shares = joined([np.array([1.0, 0.0]), np.array([1.0, 1.0])], [3.0, 3.0])

    np.testing.assert_allclose(shares, [1, 1 / 3])
    assert list(joined([np.zeros(2), np.zeros(2)], [0.0, 0.0])) == [0, 0]


def test_a_chunk_in_another_language_needs_less_of_a_cosine() -> None:
    """Texts of two languages that mean the same are farther apart than two of one."""
    cosine, abroad = np.array([0.85, 0.85, 0.5]), np.array([True, False, True])

    assert list(fitting(SLOTS, np.zeros(3), cosine, 0.9)) == []
    assert list(fitting(SLOTS, np.zeros(3), cosine, 0.9, abroad=abroad)) == [0]
