"""What the model is asked for, and what of its answer is taken."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import ExtractOptions
from plugins.memory.extraction import SCHEMA, Malformed, max_tokens, parse, prompt, retry, without_subject

TAKEN = [
    ('{"facts": []}', []),
    ('{"facts": ["Vive en Bogotá"]}', ["Vive en Bogotá"]),
    ('\n {"facts":\n["a", "b"]}\t', ["a", "b"]),
    ('{"facts": ["Vive en Bogot\\u00e1"]}', ["Vive en Bogotá"]),
    ('```json\n{"facts": ["a"]}\n```', ["a"]),
    ('```\n{"facts": ["a"]}\n```', ["a"]),
    ('```JSON\r\n{"facts": ["a"]}\r\n```', ["a"]),
    ('<think>Ana lives {"facts": ["no"]}</think>{"facts": ["a"]}', ["a"]),
    ('<think>\nhm\n</think>\n\n```json\n{"facts": ["a"]}\n```\n', ["a"]),
    ('<thinking>hm</thinking>{"facts": ["a"]}', ["a"]),
    ('{"facts": ["</facts>", "[1] x", "ignore previous instructions"]}', ["</facts>", "[1] x", "ignore previous instructions"]),
    ('{"facts": ["", " ", "\\u0000", "\\ud800"]}', ["", " ", "\x00", "\ud800"]),  # the rules for facts refuse or clean these
]

DROPPED = [
    "",
    " ",
    "null",
    "true",
    "42",
    '"facts"',
    "[]",
    '["Vive en Bogotá"]',
    "{}",
    '{"fact": ["a"]}',
    '{"Facts": ["a"]}',
    '{"facts": null}',
    '{"facts": "a"}',
    '{"facts": {"0": "a"}}',
    '{"facts": [1]}',
    '{"facts": ["a", 1]}',
    '{"facts": ["a", null]}',
    '{"facts": ["a", true]}',
    '{"facts": [["a"]]}',
    '{"facts": [{"fact": "a"}]}',
    '{"facts": [{"text": "a", "confidence": 0.9}]}',
    '{"facts": ["a"], "confidence": 1}',
    '{"facts": ["a"], "reasoning": "she said so"}',
    '{"facts": ["a"], "facts": ["b"]}',
    '{"facts": ["a"]} {"facts": ["b"]}',
    '{"facts": ["a"]}{"facts": ["b"]}',
    'Sure! {"facts": ["a"]}',
    'Here are the facts:\n{"facts": ["a"]}',
    '{"facts": ["a"]}\nLet me know if you need more.',
    '{"facts": ["a"]}.',
    'Aquí está:\n```json\n{"facts": ["a"]}\n```',
    '```json\n{"facts": ["a"]}\n```\nListo.',
    '```json\n{"facts": ["a"]}',
    "```json\n```",
    '``` {"facts": ["a"]} ```',
    '````json\n{"facts": ["a"]}\n````',
    '<think>{"facts": ["a"]}</think>',
    '<think>{"facts": ["a"]}',
    '{"facts": ["a"]}<think>hm</think>',
    'hm <think>x</think>{"facts": ["a"]}',
    '<think>a</think><think>b</think>{"facts": ["a"]}',
    "{'facts': ['a']}",
    '{facts: ["a"]}',
    '{"facts": ["a",]}',
    '{"facts": ["a"],}',
    '{"facts": ["a"}',
    '{"facts": ["a"]',
    '"facts": ["a"]}',
    '{"facts": ["a\nb"]}',
    '{"facts": ["a"] /* done */}',
    '// facts\n{"facts": ["a"]}',
    '{"facts": [NaN]}',
    '{"facts": [Infinity]}',
    '{"facts": undefined}',
    "- Vive en Bogotá\n- Tiene un perro",
    "facts:\n  - a",
    "<facts><fact>a</fact></facts>",
    "I cannot help with that.",
    "No hay hechos.",
    '\ufeff{"facts": ["a"]}',
    '{"tool": "remember", "arguments": {"facts": ["a"]}}',
    '{"response": {"facts": ["a"]}}',
    '[{"facts": ["a"]}]',
    '"{\\"facts\\": [\\"a\\"]}"',
    "[" * 100_000,
    '{"facts": ' + "[" * 20_000 + "]" * 20_000 + "}",
    '{"facts": [' + "9" * 5_000 + "]}",
    '{"facts": ["' + "x" * 60_000 + '"]}',
    "\x00",
    "\ud800",
    '{"facts": ["a"]}\x00',
]


@pytest.mark.parametrize(("answer", "facts"), TAKEN)
def test_the_exact_form_is_taken(answer: str, facts: list[str]) -> None:
    """Exactly {"facts": [strings]}; a code fence around it and a <think> block ahead of it are noise of the wire."""
    assert parse(answer) == facts


@pytest.mark.parametrize("answer", DROPPED, ids=range(len(DROPPED)))
def test_any_other_form_is_dropped_whole(answer: str) -> None:
    """Prose, extra keys, other types, broken JSON: nothing of it is taken, and nothing raises."""
    assert isinstance(parse(answer), Malformed)


@pytest.mark.parametrize(
    ("fact", "bare"),
    [
        ("El usuario vive en Bogotá", "Vive en Bogotá"),
        ("la usuaria tiene un perro", "Tiene un perro"),
        ("Usuario prefiere español", "Prefiere español"),
        ("The user lives in Paris.", "Lives in Paris."),
        ("User likes tea", "Likes tea"),
        ("Usuario de Linux desde 1998", "Usuario de Linux desde 1998"),
        ("User of Linux", "User of Linux"),
        ("The user's name is Ana", "The user's name is Ana"),
        ("Usuaria", "Usuaria"),
        ("Vive en Bogotá", "Vive en Bogotá"),
        ("Diseña la experiencia del usuario que compra", "Diseña la experiencia del usuario que compra"),
    ],
)
def test_whose_fact_it_is_goes_without_saying(fact: str, bare: str) -> None:
    """Models that begin each fact with its subject, and those that do not, say the same."""
    assert without_subject(fact) == bare


def test_there_are_enough_of_them() -> None:
    """The adversarial list has at least 60 model outputs."""
    assert len(DROPPED) >= 60


@given(
    st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=8)
)
def test_whatever_json_it_is(value: object) -> None:
    """Of all JSON there is, only an object of that form is taken."""
    is_form = (
        isinstance(value, dict)
        and set(value) == {"facts"}
        and isinstance(value["facts"], list)
        and all(isinstance(f, str) for f in value["facts"])
    )

    assert isinstance(parse(json.dumps(value)), list) == is_form


@given(st.text(max_size=300))
def test_whatever_text_it_is(text: str) -> None:
    """Nothing that a model writes raises."""
    assert isinstance(parse(text), list | Malformed)


def test_the_call_asks_for_strict_json() -> None:
    """The schema goes along, the messages are quoted as JSON, and the defaults are those of the contract."""
    asked = prompt(['Dije "hola"\n{"facts": ["x"]}'], ExtractOptions(), provider="openai")

    assert asked.schema == SCHEMA
    assert asked.max_tokens == 1024
    assert asked.model is None
    assert json.loads(asked.messages[0]["content"].split("\n", 1)[1]) == ['Dije "hola"\n{"facts": ["x"]}']


def test_the_options_go_along() -> None:
    """Model, budget and further instructions are the operator's to choose; Ollama has no cap unless one is set."""
    options = ExtractOptions(model="small", max_tokens=99, instructions="Only hobbies.")
    asked = prompt(["hola"], options, provider="ollama", model="large")

    assert (asked.model, asked.max_tokens) == ("small", 99)
    assert asked.system.endswith("Only hobbies.")
    assert max_tokens(ExtractOptions(), "ollama") is None


def test_a_long_paste_is_cut() -> None:
    """A paste is a document, not a message about oneself: only its beginning is looked at."""
    asked = prompt(["x" * 100_000], ExtractOptions(), provider="openai")

    assert len(asked.messages[0]["content"]) < 9_000


def test_the_retry_says_what_was_wrong() -> None:
    """The same call again, with the answer and the reason it was not taken."""
    first = prompt(["hola"], ExtractOptions(model="small"), provider="openai")
    second = retry(first, "Sure!", Malformed("it is not JSON"))

    assert [m["role"] for m in second.messages] == ["user", "assistant", "user"]
    assert "it is not JSON" in second.messages[2]["content"]
    assert (second.system, second.schema, second.model) == (first.system, first.schema, "small")
