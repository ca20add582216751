"""What goes wrong with a model's server, said in our own errors; no key, no address and no page of HTML is ever repeated."""

import email.utils
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from bot import ContextTooLong, ModelError, ModelMisconfigured, ModelRefused, ModelTimeout, ModelUnavailable

T = TypeVar("T")

LONGEST_WORDS = 200
LONGEST_RETRY_AFTER = 3600.0
_TOO_LONG = re.compile(
    r"context[ _](?:length|size|window)|maximum context|exceed_context_size|context_length_exceeded|prompt is too long|input is too long"
    r"|too many (?:input )?tokens|exceeds? the (?:model'?s )?(?:available |maximum )?context",
    re.IGNORECASE,
)
_LIMIT = re.compile(r"(?:context|maximum|limit|size)\D{0,60}?(\d{3,8})(?=\s*(?:tokens|\)|,|\.))", re.IGNORECASE)
_USED = re.compile(r"(?:resulted in|request(?:ed)? (?:has )?\(?|prompt (?:has|contains|is)|you requested)\D{0,30}(\d{3,8})", re.IGNORECASE)
_KEY = re.compile(r"\b(?:sk|key|Bearer)[-_ ][\w*.-]{6,}", re.IGNORECASE)


def foreign() -> tuple[type[Exception], ...]:
    """Everything that the library and the HTTP client below it raise, and what their reading of a broken stream raises."""
    import httpx2
    import openai

    return (openai.OpenAIError, httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, httpx2.CookieConflict, ValueError)


def building(build: Callable[[], T], base_url: str | None) -> T:
    """What `build` gives. Raises ModelMisconfigured where the address is none."""
    import httpx2
    import openai

    try:
        if base_url is not None:
            address = urlsplit(base_url)
            if address.scheme not in ("http", "https") or not address.hostname or address.port == 0:
                raise ValueError("it has no scheme, or no host")
        return build()
    except (openai.OpenAIError, httpx2.InvalidURL, ValueError, TypeError) as error:
        raise ModelMisconfigured(f"OPENAI_BASE_URL={base_url!r} is no address: write it as in http://localhost:8000/v1") from error


def translate(error: Exception, provider: str, model: str, key: str, missing: str = "") -> ModelError:
    """The error that a failure is for us; its text says what to do next."""
    import httpx2
    import openai

    def said(what: str) -> str:
        return f"{provider}: {what}"

    if isinstance(error, openai.APIStatusError):
        return _of_status(error, said, model, key, missing)
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        return ModelTimeout(said("the server did not answer in time"))
    if isinstance(error, openai.ContentFilterFinishReasonError):
        return ModelRefused(said("a filter refused"))
    if isinstance(error, httpx2.UnsupportedProtocol | httpx2.InvalidURL):
        return ModelMisconfigured(said("the address of the server cannot be used (OPENAI_BASE_URL, OLLAMA_BASE_URL)"))
    if isinstance(error, openai.APIConnectionError | httpx2.TransportError):
        if isinstance(error.__cause__, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError):
            return ModelMisconfigured(said("the address or the key cannot be sent (OPENAI_BASE_URL, OPENAI_API_KEY)"))
        return ModelUnavailable(said("the server cannot be reached, or it ended the connection"))
    if isinstance(error, openai.APIError) and type(error) is openai.APIError:
        return _of_stream(error, said, key)
    if isinstance(error, openai.LengthFinishReasonError):
        return ModelError(said("it used up its tokens before the answer was whole"))
    if isinstance(error, openai.APIResponseValidationError | httpx2.DecodingError | ValueError):
        return ModelUnavailable(said("the server answered with something that is no chat completion"))
    if isinstance(error, httpx2.TooManyRedirects):
        return ModelMisconfigured(said("the server redirects without end: check its address"))
    return ModelError(said(type(error).__name__))


def _of_status(error: Any, said: Callable[[str], str], model: str, key: str, missing: str) -> ModelError:
    status, words = error.status_code, _words(error, key)
    shown = said(f"the server answered {status}{f': {words}' if words else ''}")
    if status in (400, 413, 422) and _is_too_long(error):
        return _too_long(error, shown)
    if status in (401, 403):
        return ModelMisconfigured(f"{shown}: check OPENAI_API_KEY")
    if status == 404:
        return ModelMisconfigured(f"{shown}: {missing or f'check BOT_MODEL={model!r} and OPENAI_BASE_URL'}")
    if _code(error) == "insufficient_quota" or status == 402:
        return ModelMisconfigured(f"{shown}: the account has no credit left")
    if _code(error) in ("content_filter", "content_policy_violation"):
        return ModelRefused(shown)
    if status in (408, 504):
        return ModelTimeout(shown)
    if status in (409, 425, 429) or status >= 500:
        return ModelUnavailable(shown)
    return ModelMisconfigured(shown)


def _of_stream(error: Any, said: Callable[[str], str], key: str) -> ModelError:
    """An error that came inside of a stream that had begun well."""
    if _is_too_long(error):
        return _too_long(error, said("the prompt is longer than the model takes"))
    if _code(error) in ("content_filter", "content_policy_violation"):
        return ModelRefused(said("a filter refused"))
    return ModelUnavailable(said(f"the server ended the answer with an error: {_words(error, key)}"))


def passing(error: Exception) -> bool:
    """Whether the same request may well succeed in a moment."""
    import openai

    if isinstance(error, openai.APIStatusError):
        if _code(error) == "insufficient_quota":
            return False
        return error.status_code in (408, 409, 425, 429) or (error.status_code >= 500 and not _is_too_long(error))
    return isinstance(translate(error, "", "", ""), ModelUnavailable | ModelTimeout)


def retry_after(error: Exception) -> float | None:
    """The seconds that the server asks to wait for, or None where it does not say."""
    headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", {})
    if milliseconds := _number(headers.get("retry-after-ms")):
        return milliseconds / 1000
    told = headers.get("retry-after")
    if told is None:
        return None
    if (seconds := _number(told)) is not None:
        return seconds
    parsed = email.utils.parsedate_tz(told)
    return max(0.0, email.utils.mktime_tz(parsed) - time.time()) if parsed else None


def refused_part(error: Exception) -> str | None:
    """Which part of the request a server refused that it can be asked without: `limit`, `format`, `usage`, `tools`, or None."""
    if getattr(error, "status_code", 0) not in (400, 404, 415, 422, 500, 501) or _is_too_long(error):
        return None
    text = f"{getattr(error, 'param', '') or ''} {_message(error)}".lower()
    for part, marks in (
        ("usage", ("stream_options", "include_usage")),
        ("limit", ("max_tokens", "max_completion_tokens")),
        ("format", ("response_format", "json_schema", "json_object", "json schema", "grammar", "structured output")),
        ("tools", ("support tools", "tools is not supported", "'tools'", '"tools"', "tool_choice", "tool use")),
    ):
        if any(mark in text for mark in marks):
            return part
    return None


# ---------------------------------------------------------------------------------------------- what the server said


def _is_too_long(error: Any) -> bool:
    return bool(_TOO_LONG.search(f"{_code(error)} {_body(error).get('type', '')} {_message(error)}"))


def _too_long(error: Any, shown: str) -> ContextTooLong:
    """With the numbers that the server gives, in fields of their own (llama.cpp) or in its words."""
    ours, body, message = ContextTooLong(shown), _body(error), _message(error)
    limit, used = _LIMIT.search(message), _USED.search(message)
    ours.limit = _whole(body.get("n_ctx")) or (int(limit[1]) if limit else None)
    ours.used = _whole(body.get("n_prompt_tokens")) or (int(used[1]) if used else None)
    if ours.limit and ours.used and ours.used <= ours.limit:
        ours.used = None
    return ours


def _words(error: Any, key: str) -> str:
    """What the server said, on one short line; a page of HTML says nothing."""
    message = _message(error)
    if not message or re.match(r"\s*<", message):
        return ""
    message = " ".join(message.replace(key, "[hidden]").split()) if key else " ".join(message.split())
    return _KEY.sub("[hidden]", message)[:LONGEST_WORDS]


def _message(error: Any) -> str:
    body = _body(error)
    inner = body.get("message") or body.get("error") or body.get("detail")
    if isinstance(inner, Mapping):
        inner = inner.get("message")
    if inner:
        return str(inner)
    raw = getattr(error, "body", None)
    return raw if isinstance(raw, str) else ""


def _code(error: Any) -> str:
    return str(getattr(error, "code", "") or _body(error).get("code", "") or "")


def _body(error: Any) -> Mapping[str, Any]:
    body = getattr(error, "body", None)
    return body if isinstance(body, Mapping) else {}


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number <= LONGEST_RETRY_AFTER else None


__all__ = ["building", "foreign", "passing", "refused_part", "retry_after", "translate"]
