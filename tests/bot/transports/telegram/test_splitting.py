"""Splitting: no part is too long, nothing is lost, and a reader sees no seam."""

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.transports.telegram.formatting import Entity, Formatted, formatted, plain, units
from bot.transports.telegram.splitting import LIMIT, split

TEXT = st.text(st.one_of(st.characters(codec="utf-8", exclude_characters="\0"), st.sampled_from(" \n.😀a\t`")), max_size=300)


@settings(max_examples=300, deadline=None)
@given(TEXT, st.integers(2, 60))
def test_nothing_but_space_is_lost_and_no_part_is_too_long(text: str, limit: int) -> None:
    """Every part fits and has something to show; together they are the whole."""
    parts = [part.text for part in split(plain(text), limit=limit)]

    assert all(part.strip() and units(part) <= limit for part in parts)
    assert "".join("".join(parts).split()) == "".join(plain(text).text.split())


@settings(max_examples=300, deadline=None)
@given(TEXT, st.integers(2, 60), st.data())
def test_entities_stay_over_their_words(text: str, limit: int, data: st.DataObject) -> None:
    """Each entity lies inside its part, and covers in all what it covered before, space aside."""
    size = units(text)
    spans = data.draw(st.lists(st.tuples(st.integers(0, size), st.integers(1, 30)), max_size=5))
    entities = tuple(Entity("bold", a, min(n, size - a)) for a, n in spans if min(n, size - a) > 0)
    parts = split(Formatted(text, entities), limit=limit)

    for part in parts:
        assert len(part.text.encode("utf-16-le")) // 2 == units(part.text)
        assert all(one.offset >= 0 and one.length > 0 and one.end <= units(part.text) for one in part.entities)
    assert _covered(parts) == _covered([Formatted(text, entities)])


def _covered(parts: list[Formatted]) -> list[bytes]:
    """The units under entities, in order, without those of space."""
    out = []
    for part in parts:
        raw = part.text.encode("utf-16-le")
        for at in range(0, len(raw), 2):
            if (
                any(one.offset <= at // 2 < one.end for one in part.entities)
                and not raw[at : at + 2].decode("utf-16-le", "replace").isspace()
            ):
                out.append(raw[at : at + 2])
    return out


def test_the_limit_counts_utf_16_units_and_no_emoji_is_cut() -> None:
    """4,096 emojis are two messages, each of whole emojis."""
    parts = split(plain("😀" * 4096))

    assert [units(part.text) for part in parts] == [4096, 4096]
    assert all(set(part.text) == {"😀"} for part in parts)


def test_a_family_emoji_stays_together() -> None:
    """An emoji of several code points is not cut in its middle where there is another place."""
    parts = split(plain("👨‍👩‍👧‍👦" * 30), limit=100)

    assert all(part.text.startswith("👨") and part.text.endswith("👦") for part in parts)


def test_paragraphs_come_before_lines_before_sentences_before_words() -> None:
    """The cut is where a reader would pause."""
    assert [part.text for part in split(plain("uno dos\n\ntres\ncuatro"), limit=18)] == ["uno dos", "tres\ncuatro"]
    assert [part.text for part in split(plain("uno dos\ntres cuatro"), limit=15)] == ["uno dos", "tres cuatro"]
    assert [part.text for part in split(plain("Uno dos. Tres cuatro"), limit=15)] == ["Uno dos.", "Tres cuatro"]
    assert [part.text for part in split(plain("uno dos tres"), limit=10)] == ["uno dos", "tres"]


def test_a_split_code_block_is_code_in_both_parts() -> None:
    """The fence is closed and opened again, with its language."""
    code = "\n".join(f"print({n})" for n in range(1000))
    parts = split(formatted(f"Mira:\n\n```python\n{code}\n```"))

    assert len(parts) > 2
    assert all(part.entities and part.entities[-1].language == "python" and part.entities[-1].type == "pre" for part in parts)


def test_code_keeps_its_indentation_at_a_cut() -> None:
    """A line of code that begins a part keeps the space before it."""
    code = "\n".join(f"    x = {n}" for n in range(1000))
    parts = split(formatted(f"```python\n{code}\n```"))

    assert all(part.text.startswith("    x") for part in parts)


def test_a_link_is_whole() -> None:
    """No cut inside the words of a link while there is another place."""
    parts = split(formatted("palabra " * 10 + "[uno dos tres cuatro](https://example.org)"), limit=90)

    assert [one.length for part in parts for one in part.entities] == [len("uno dos tres cuatro")]


def test_the_sources_never_stand_alone() -> None:
    """What would be a last message of the sources only takes the paragraph before it along."""
    body = "\n\n".join(f"Párrafo {n}. " + "texto " * 60 for n in range(11))
    text = body[: LIMIT - 20] + "\n\nÚltimo párrafo.\n\nFuentes: [1] docs/envios.md"
    *_, last = split(plain(text))

    assert last.text == "Último párrafo.\n\nFuentes: [1] docs/envios.md"


def test_more_than_a_hundred_entities_are_spread_over_parts() -> None:
    """Telegram ignores those past 100, so a part has no more."""
    parts = split(formatted(" ".join(f"**n{n}**" for n in range(250))))

    assert [len(part.entities) <= 100 for part in parts] == [True] * len(parts)
    assert sum(len(part.entities) for part in parts) == 250


def test_nothing_to_show_is_no_message() -> None:
    """An empty message is refused by Telegram."""
    assert split(plain(" \n\n ")) == []
    assert split(plain("")) == []
