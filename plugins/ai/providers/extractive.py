"""No model: the best sentences of the retrieved passages, each cited, or the honest word that there is none."""

from collections.abc import AsyncIterator, Callable

from bot import Completion, Prompt, ToolCall
from bot import marked as _
from plugins.ai.providers import sentences
from plugins.ai.providers.matching import plain

UNKNOWN = _("I do not know: I found no answer to that in my documents.")
HELLO = _("Hello! Ask me something and I will look for it in my documents. /help lists what I can do.")
WELCOME = _("You are welcome! If you have another question, I will look for it in my documents.")
GOODBYE = _("Goodbye! I am here whenever you have a question.")
ABOUT = _("I am Sabio: ask me something and I answer from my documents and say where it comes from. /help lists what I can do.")
FINE = _("Fine, thank you! Ask me something and I will look for it in my documents.")

_PLEASANTRIES = {
    HELLO: (
        "hola|buenas|buenos dias|buenas tardes|buenas noches|buen dia|que tal|hey|hi|hello|hello there|good morning|good afternoon"
        "|good evening"
    ),
    WELCOME: (
        "gracias|muchas gracias|mil gracias|vale gracias|ok gracias|genial gracias|perfecto gracias|thanks|thank you|thanks a lot"
        "|thank you very much|many thanks|ok thanks|great thanks"
    ),
    GOODBYE: "adios|chao|chau|hasta luego|hasta pronto|hasta manana|nos vemos|bye|goodbye|see you|see you later",
    ABOUT: (
        "quien eres|hola quien eres|que eres|como te llamas|que haces|que puedes hacer|que sabes hacer|ayuda|who are you|hi who are you"
        "|hello who are you|what are you|what is your name|what can you do|help"
    ),
    FINE: "como estas|hola como estas|hola que tal|que tal estas|how are you|hi how are you|hello how are you",
}
SAID = {phrase: message for message, phrases in _PLEASANTRIES.items() for phrase in phrases.split("|")}


class ExtractiveProvider:
    """Answers from `prompt.passages` alone; `translate(lang, message)` gives the few words that are its own."""

    name = "extractive"
    model = "extractive"

    def __init__(self, translate: Callable[[str, str], str]) -> None:
        self._translate = translate

    async def complete(self, prompt: Prompt) -> Completion:
        """The whole answer."""
        return Completion(self._answer(prompt))

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | ToolCall]:
        """The answer, a line at a time."""
        for line in self._answer(prompt).splitlines(keepends=True):
            yield line

    def _answer(self, prompt: Prompt) -> str:
        if pleasantry := SAID.get(plain(prompt.question)):
            return self._translate(prompt.language, pleasantry)
        found = sentences.answer(prompt.question, prompt.passages, prompt.language)
        return found or self._translate(prompt.language, UNKNOWN)
