"""How voice notes are written down: a part of the bot where `BOT_TRANSCRIBE_MODEL` names a model, and none where it does not."""

from bot import ConfigurationError, Parts, Registry, Transcriber
from plugins.ai.providers.transcription import OpenAITranscriber


def register(registry: Registry) -> None:
    """Add the part."""
    registry.part(Transcriber, transcriber)  # type: ignore[type-abstract]  # a port is a Protocol


def transcriber(parts: Parts) -> Transcriber:
    """The Transcriber of the settings. Raises ConfigurationError where there is none."""
    settings = parts.settings
    if settings.transcribe_model is None:
        raise ConfigurationError("BOT_TRANSCRIBE_MODEL is not set")
    key = settings.openai_api_key
    return OpenAITranscriber(
        model=settings.transcribe_model,
        api_key=key.get_secret_value() if key else None,
        base_url=settings.openai_base_url,
        timeout=settings.model_timeout,
    )
