"""Voice notes written down by the model's server, where it has `/audio/transcriptions`."""

from plugins.ai.providers import failures


class OpenAITranscriber:
    """A Transcriber. `timeout` is in seconds, for one recording. Nothing is imported or opened before the first."""

    def __init__(self, *, model: str, api_key: str | None = None, base_url: str | None = None, timeout: float = 60.0) -> None:
        self._model = model
        self._key = (api_key or "").strip() or "none"
        self._base_url = base_url
        self._timeout = timeout

    async def transcribe(self, data: bytes, name: str, *, lang: str) -> str:
        """The words of a recording. Raises ModelError and its kinds."""
        from openai import AsyncOpenAI

        client = failures.building(
            lambda: AsyncOpenAI(api_key=self._key, base_url=self._base_url, timeout=self._timeout, max_retries=1), self._base_url
        )
        async with client:
            try:
                heard = await client.audio.transcriptions.create(file=(name, data), model=self._model, language=lang)
            except failures.foreign() as error:
                raise failures.translate(error, "openai", self._model, self._key) from error
        return str(getattr(heard, "text", heard) or "").strip()
