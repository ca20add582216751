"""plugins/ai/providers/failures.py: nothing foreign gets through."""

import inspect
import json
from types import SimpleNamespace

import httpx2
import openai
import pytest

from bot import ModelError
from plugins.ai.providers import failures

REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions")
KEY = "sk-test-0123456789abcdef"

NEVER_RAISED = {
    "InvalidWebhookSignatureError": "webhooks are not used",
    "SubjectTokenProviderError": "workload identity is not used",
    "WebSocketConnectionClosedError": "the realtime API is not used",
    "WebSocketQueueFullError": "the realtime API is not used",
    "OAuthError": "OAuth is not used; it is an AuthenticationError anyway",
}


def _instances() -> list[Exception]:
    made: list[Exception] = []
    for module in (openai, httpx2):
        for name, cls in sorted(vars(module).items()):
            if inspect.isclass(cls) and issubclass(cls, Exception) and not issubclass(cls, Warning) and name not in NEVER_RAISED:
                made.append(_make(cls))
    return made


def _make(cls: type[Exception]) -> Exception:
    status = getattr(cls, "status_code", 500) if isinstance(getattr(cls, "status_code", None), int) else 500
    response = httpx2.Response(status, request=REQUEST)
    for build in (
        lambda: cls(message=f"no {KEY}", response=response, body=None),  # type: ignore[call-arg]
        lambda: cls(response=response, body=None),  # type: ignore[call-arg]
        lambda: cls(f"no {KEY}", request=REQUEST, body=None),  # type: ignore[call-arg]
        lambda: cls(f"no {KEY}", request=REQUEST, response=response),  # type: ignore[call-arg]
        lambda: cls(request=REQUEST),  # type: ignore[call-arg]
        lambda: cls(completion=SimpleNamespace(usage=None)),  # type: ignore[call-arg]
        lambda: cls(f"no {KEY}"),
        lambda: cls(),
    ):
        try:
            return build()
        except (TypeError, AttributeError):
            continue
    raise AssertionError(f"{cls} cannot be made")


@pytest.mark.parametrize("error", _instances(), ids=lambda error: f"{type(error).__module__.split('.')[0]}.{type(error).__name__}")
def test_every_exception_of_the_libraries_is_caught_and_translated(error: Exception) -> None:
    """Whatever openai and httpx2 can raise is among those caught, and becomes a ModelError without the key."""
    ours = failures.translate(error, "openai", "m", KEY)

    assert isinstance(error, failures.foreign())
    assert isinstance(ours, ModelError)
    assert KEY not in str(ours)


@pytest.mark.parametrize("error", [json.JSONDecodeError("no", "x", 0), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no")])
def test_a_stream_that_cannot_be_read(error: Exception) -> None:
    """What reading a broken stream raises is caught too."""
    assert isinstance(error, failures.foreign())
    assert isinstance(failures.translate(error, "openai", "m", KEY), ModelError)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "nonsense"}, None),
        ({"retry-after": "-4"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_how_long_the_server_asks_to_wait(headers: dict[str, str], expected: float | None) -> None:
    """Seconds, milliseconds and dates are read; nonsense is as if nothing was said."""
    response = httpx2.Response(429, request=REQUEST, headers=headers)
    error = openai.RateLimitError("slow", response=response, body=None)

    assert failures.retry_after(error) == expected
