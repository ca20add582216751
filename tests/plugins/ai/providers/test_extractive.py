"""plugins/ai/providers/extractive.py, sentences.py and reading.py: answers without a model."""

import json
import random

import pytest

from bot import Passage, Prompt
from bot.settings import ROOT
from bot.testing import create_test_bot
from plugins.ai.providers import sentences
from plugins.ai.providers.extractive import GOODBYE, HELLO, UNKNOWN, WELCOME, ExtractiveProvider
from plugins.ai.providers.reading import units

XQUAD = ROOT.parent / "shared" / "data" / "xquad_es.json"
SHIPPING = Passage(
    "# Envíos\n\nEl envío a la península tarda **3 días**. A Canarias tarda una semana, por [aduana](https://example.org).\n\n"
    "Los pedidos se preparan en el día.",
    citation="faq.md › Envíos",
    section="Preguntas › Envíos",
)
PAYMENT = Passage("Se paga con tarjeta o por transferencia.", citation="pagos.md", section="Pagos")


def keep(lang: str, message: str) -> str:
    return message


async def said(question: str, *passages: Passage, lang: str = "es") -> str:
    """What the provider answers."""
    return (await ExtractiveProvider(keep).complete(Prompt("", [], question=question, passages=passages, language=lang))).text


async def test_the_best_sentence_is_cited() -> None:
    """A sentence of the passages, without the marks of Markdown, followed by the number of its passage."""
    answer = await said("¿Cuánto tarda el envío a Canarias?", PAYMENT, SHIPPING)

    assert "A Canarias tarda una semana, por aduana [2]." in answer
    assert "[1]" not in answer


async def test_at_most_three_sentences() -> None:
    """An answer is short, however much there is."""
    many = Passage(" ".join(f"El envío número {n} tarda {n} días y llega a casa." for n in range(30)), citation="a")

    assert (await said("¿cuánto tarda el envío?", many)).count("[1]") <= 3


@pytest.mark.parametrize("question", ["¿Quién ganó el mundial?", "¿Cuál es la capital de Francia?", "¿¿??", "el de la"])
async def test_it_says_that_it_does_not_know(question: str) -> None:
    """Where nothing is relevant, or nothing was found, it says so."""
    assert await said(question, SHIPPING, PAYMENT) == UNKNOWN
    assert await said(question) == UNKNOWN


@pytest.mark.parametrize(
    ("text", "answer"), [("¡Hola!", HELLO), ("muchas gracias", WELCOME), ("Thanks!", WELCOME), ("hasta luego", GOODBYE), ("Hi", HELLO)]
)
async def test_a_greeting_is_answered_kindly(text: str, answer: str) -> None:
    """A person who says hello is told what can be asked, not that nothing was found."""
    assert await said(text, SHIPPING) == answer


async def test_the_persons_language_is_preferred() -> None:
    """Where the documents say it in two languages, the answer is in the person's."""
    spanish = Passage("Para borrar todos tus datos, escribe `/forget_me` y responde que sí.", citation="es", section="Borrar los datos")
    english = Passage("To erase all your data, write `/forget_me` and answer yes.", citation="en", section="Erase the data")

    assert (await said("¿cómo borro mis datos?", english, spanish)).startswith("Para borrar todos tus datos")
    assert (await said("erase data", spanish, english, lang="en")).startswith("To erase all your data")


async def test_a_list_stands_below_what_announces_it() -> None:
    """Steps are not torn from their sentence."""
    steps = Passage("Para devolver un pedido:\n\n1. Escribe a **soporte**.\n2. Imprime la [etiqueta](x).\n", section="Devoluciones")

    answer = await said("¿cómo devuelvo un pedido?", steps)

    assert answer == "Para devolver un pedido [1]:\n\n- Escribe a soporte.\n- Imprime la etiqueta."


async def test_an_example_is_kept_whole() -> None:
    """Code below the sentence that announces it is shown as code."""
    example = Passage("Instala el paquete con:\n\n```sh\npip install sabio  # [2]\n```\n", section="Instalar")

    answer = await said("¿cómo instalo el paquete?", example)

    assert answer == "Instala el paquete con [1]:\n\n```sh\npip install sabio  # [2]\n```"


async def test_a_stream_is_the_same_in_lines() -> None:
    """Both ways give one text."""
    prompt = Prompt("", [], question="¿cuánto tarda el envío?", passages=[SHIPPING])
    provider = ExtractiveProvider(keep)

    streamed = "".join([str(item) async for item in provider.stream(prompt)])

    assert streamed == (await provider.complete(prompt)).text


# ---------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("markdown", "texts"),
    [
        ("Uno. Dos, p. ej. esto. ¿Tres? ¡Cuatro!", ["Uno.", "Dos, p. ej. esto.", "¿Tres?", "¡Cuatro!"]),
        ("Cuesta 3.50 euros. Ver v1.2.", ["Cuesta 3.50 euros.", "Ver v1.2."]),
        ("**Negrita** y _cursiva_ con [enlace](http://x.y) e `código`.", ["Negrita y cursiva con enlace e `código`."]),
        ("![foto](x.png) Texto.", ["Texto."]),
        ("import X from 'y'\n\n<Aside>\nTexto.\n</Aside>\n\n{/* nota */}", ["Texto."]),
        (":::note\nTexto.\n:::", ["Texto."]),
        ("# Título {#ancla}\n\nTexto.", ["Texto."]),
        ("| Variable | Qué |\n|---|---|\n| `BOT_X` | algo |", ["Variable: Qué", "`BOT_X`: algo"]),
        ("```\nsolo código. No es prosa.\n```", []),
        ("una línea\ny otra", ["una línea y otra"]),
    ],
)
def test_markdown_as_it_is_read(markdown: str, texts: list[str]) -> None:
    """Sentences, items and rows without marks; code, tags and pictures are no sentences."""
    assert [unit.text for unit in units(markdown)] == texts


def test_what_a_sentence_stands_under() -> None:
    """The nearest heading belongs to a sentence."""
    assert [(u.heading, u.text) for u in units("# A\n\nUno.\n\n## B `x`\n\nDos.")] == [("A", "Uno."), ("B `x`", "Dos.")]


# ---------------------------------------------------------------------------------------------- real documents


@pytest.mark.parametrize(
    ("question", "lang", "word", "header"),
    [
        ("¿Cómo borro todos mis datos?", "es", "/forget_me", "Fuentes: [1] docs/es/"),
        ("How do I erase all my data?", "en", "/forget_me", "Sources: [1] docs/en/"),
        ("¿cómo cambio el idioma?", "es", "/language", "Fuentes: [1] docs/es/"),
        ("does it work without internet?", "en", "internet", "Sources: [1] docs/en/"),
    ],
)
async def test_questions_about_the_bot_itself(question: str, lang: str, word: str, header: str) -> None:
    """On a fresh start it answers from its own documents, in both languages."""
    settings = {"BOT_DOCUMENTS": f"{ROOT}/docs/es,{ROOT}/docs/en"}
    async with create_test_bot(settings=settings) as bot:
        (answer,) = await bot.say(question, lang=lang)

        text, _, line = answer.rpartition("\n\n")
        assert word in text
        assert line.startswith(header) or line.replace("[2]", "[1]").startswith(header)


def test_questions_of_people() -> None:
    """Over real questions, the chosen sentences hold the answer in most cases, and strangers' passages give none."""
    if not XQUAD.exists():
        pytest.skip("needs ../shared/data/xquad_es.json")
    data = json.loads(XQUAD.read_text(encoding="utf-8"))
    texts = {passage["id"]: passage["text"] for passage in data["passages"]}
    rng = random.Random(7)
    asked = rng.sample(data["questions"], 150)
    right = invented = 0
    for question in asked:
        there = question["source_passage"]
        others = [Passage(texts[i]) for i in rng.sample(sorted(texts), 3) if i != there][:2]
        right += any(a in sentences.answer(question["question"], [Passage(texts[there]), *others], "es") for a in question["answers"])
        invented += bool(sentences.answer(question["question"], others, "es"))

    assert right >= 0.65 * len(asked)
    assert invented <= 0.05 * len(asked)
