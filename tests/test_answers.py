"""Out of the box the bot answers from its own documentation: what people ask first gets the right sentence, from the right page."""

import re
from pathlib import Path

import pytest

from bot.testing import create_test_bot

DOCS = Path(__file__).resolve().parent.parent / "docs"
ASKED = {
    "es": [
        ("¿Cómo borro todos mis datos?", "/forget_me", "privacidad.md"),
        ("como borro mis datos", "/forget_me", "privacidad.md"),
        ("borrar cuenta", "/forget_me", "privacidad.md"),
        ("¿Qué guardas sobre mí?", "los mensajes recientes de cada chat", "privacidad.md"),
        ("¿quién puede ver mis datos?", "Solo tú puedes ver tus datos", "privacidad.md"),
        ("exportar mis datos", "/my_data", "privacidad.md"),
        ("¿compartes mis datos con alguien?", "No comparto tus datos", "privacidad.md"),
        ("¿Qué recuerdas de mí?", "/memory", "memoria.md"),
        ("¿cómo olvidas un dato?", "/forget", "memoria.md"),
        ("¿puedes recordar mi contraseña?", "No, no puedo recordar contraseñas", "memoria.md"),
        ("¿cómo pauso la memoria?", "/memory pausa", "memoria.md"),
        ("¿Cómo agrego documentos?", "/ingest", "documentos.md"),
        ("¿cómo quito un documento?", "/remove", "documentos.md"),
        ("¿Qué formatos aceptas?", "PDF, Markdown", "documentos.md"),
        ("¿Cómo cambio el idioma?", "/language", "preguntas-frecuentes.md"),
        ("¿Qué idiomas hablas?", "Hablo español e inglés", "que-es.md"),
        ("¿funciona en WhatsApp?", "todavía no est", "que-es.md"),
        ("¿necesitas internet?", "No necesito internet", "que-es.md"),
        ("¿cuánto cuesta?", "gratis", "que-es.md"),
        ("¿cómo lo instalo?", "make run", "instalacion.md"),
        ("¿cómo uso Ollama?", "BOT_PROVIDER=ollama", "instalacion.md"),
        ("¿cómo uso docker?", "docker compose run", "instalacion.md"),
        ("¿cómo hago una copia de seguridad?", "copia la carpeta", "instalacion.md"),
        ("¿qué es BOT_TOP_K?", "cuántos pasajes", "configuracion.md"),
        ("el modelo tarda demasiado", "BOT_MODEL_TIMEOUT", "problemas.md"),
        ("¿cómo escribo un plugin?", "register(registry)", "plugins.md"),
    ],
    "en": [
        ("How do I delete all my data?", "/forget_me", "privacy.md"),
        ("delete my account", "/forget_me", "privacy.md"),
        ("What do you store about me?", "the recent messages of each chat", "privacy.md"),
        ("who can see my data?", "Only you can see your data", "privacy.md"),
        ("export my data", "/my_data", "privacy.md"),
        ("do you send my messages to OpenAI?", "nor send your messages", "privacy.md"),
        ("What do you remember about me?", "/memory", "memory.md"),
        ("how do I pause the memory?", "/memory pause", "memory.md"),
        ("How do I add documents?", "/ingest", "documents.md"),
        ("how do I remove a document?", "/remove", "documents.md"),
        ("which file formats do you accept?", "PDF, Markdown", "documents.md"),
        ("How do I change the language?", "/language", "faq.md"),
        ("does it work on Telegram?", "not available in this version yet", "what-it-is.md"),
        ("do you need internet?", "I need no internet", "what-it-is.md"),
        ("how much does it cost?", "free of charge", "what-it-is.md"),
        ("what do the numbers in brackets mean?", "which source each sentence", "what-it-is.md"),
        ("how do I install it?", "make run", "install.md"),
        ("how do I use Ollama?", "BOT_PROVIDER=ollama", "install.md"),
        ("how do I back up?", "copy the whole folder", "install.md"),
        ("what is BOT_MIN_SCORE?", "from 0 to 1", "settings.md"),
        ("the bot doesn't start", "misspelt", "troubleshooting.md"),
        ("how do I write a plugin?", "register(registry)", "plugins.md"),
    ],
}
UNKNOWN = {
    "es": ["¿Cuál es la capital de Francia?", "¿Cuánto tarda el envío?", "receta de arepas"],
    "en": ["What is the capital of France?", "who won the world cup?"],
}
WORDS = {"es": ("Fuentes: ", "No lo sé"), "en": ("Sources: ", "I do not know")}


@pytest.mark.parametrize("language", ASKED)
async def test_what_people_ask_first(language: str) -> None:
    """The answer holds the fact, cites the page it is from in the reader's language, and is one to three sentences."""
    wrong = []
    async with create_test_bot(settings={"BOT_DOCUMENTS": f"{DOCS / 'es'},{DOCS / 'en'}"}) as bot:
        for number, (question, holds, page) in enumerate(ASKED[language]):
            (said,) = await bot.say(question, user=f"person-{number}")
            answer, _, sources = said.partition(f"\n\n{WORDS[language][0]}")
            cites = re.findall(r"(?<=\s)\[\d+\]", answer)
            if holds not in answer or not 1 <= len(cites) <= 3 or f"] docs/{language}/{page}" not in sources.replace(f"{DOCS.parent}/", ""):
                wrong.append((question, said))

    assert wrong == []


@pytest.mark.parametrize("language", UNKNOWN)
async def test_what_it_cannot_know(language: str) -> None:
    """What the documentation does not say is not answered from it."""
    async with create_test_bot(settings={"BOT_DOCUMENTS": f"{DOCS / 'es'},{DOCS / 'en'}"}) as bot:
        said = [(await bot.say(question, user=question, lang=language))[0] for question in UNKNOWN[language]]

    assert [text for text in said if not text.startswith(WORDS[language][1])] == []
