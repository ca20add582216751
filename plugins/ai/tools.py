"""The model's calls of tools: checked, run, and answered, whatever goes wrong."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot import Assistant, BotError, LLMMessage, Marks, Recall, Tool, ToolCall, Update

log = logging.getLogger(__name__)

MAX_ROUNDS = 8
MAX_CALLS = 16  # of one round
MAX_RESULT = 8_000  # characters of a result that the model is shown
_TYPES: Mapping[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "array": (list,)}


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What a tool is called with where there is no handler: who asks what where. Its names are those of Context."""

    ai: Assistant
    update: Update
    lang: str
    recall: Recall | None
    marks: Marks

    @property
    def sender(self) -> str:
        """The canonical id of who wrote; empty for nobody."""
        return self.update.sender or ""

    @property
    def chat(self) -> str:
        """The key of the chat."""
        return self.update.chat_key

    @property
    def text(self) -> str:
        """The whole message."""
        return self.update.text

    @property
    def is_group(self) -> bool:
        """Whether others read the answer too."""
        return self.update.is_group

    @property
    def evidence(self) -> str:
        """What counts as the person's own words."""
        return self.update.text if self.update.evidence is None else self.update.evidence


class BadArguments(ValueError):
    """The model's arguments do not fit the tool; the text tells it how."""


async def answer(calls: Sequence[ToolCall], tools: Mapping[str, Tool], context: Any) -> list[LLMMessage]:
    """Run the calls of one round in order; a message for each. A failure is a message too, so that the model can mend it."""
    messages: list[LLMMessage] = []
    for n, call in enumerate(calls):
        result = await _run(call, tools, context) if n < MAX_CALLS else f"error: at most {MAX_CALLS} calls at once"
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result[:MAX_RESULT]})
    return messages


def asked(text: str, calls: Sequence[ToolCall]) -> LLMMessage:
    """The model's own message, as it has to stand ahead of the results."""
    functions = [{"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in calls]
    return {"role": "assistant", "content": text or None, "tool_calls": functions}


async def _run(call: ToolCall, tools: Mapping[str, Tool], context: Any) -> str:
    tool = tools.get(call.name)
    if tool is None:
        return f"error: there is no tool {call.name!r}; there are: {', '.join(sorted(tools)) or 'none'}"
    try:
        result = await tool.run(context, **arguments(call.arguments, tool.spec.parameters))
    except BadArguments as error:
        return f"error: {error}"
    except BotError as error:
        log.info("tool %s: %s", call.name, error.code)
        return f"error: {error}"
    except Exception as error:  # noqa: BLE001 - a tool is someone else's code: whatever it raises, the model is told and the turn goes on
        log.warning("tool %s failed: %s", call.name, type(error).__name__)
        return f"error: {type(error).__name__}: {error}"
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)


def arguments(written: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the model wrote them, checked against the tool's schema. Raises BadArguments that says what is wrong."""
    try:
        given = json.loads(written or "{}")
    except (ValueError, RecursionError) as error:
        raise BadArguments(f"the arguments are not valid JSON: {error}") from error
    if not isinstance(given, dict):
        raise BadArguments("the arguments must be a JSON object")
    known, required = schema.get("properties", {}), schema.get("required", ())
    given = {name: value for name, value in given.items() if not (value is None and name in known and name not in required)}
    if unknown := sorted(given.keys() - known.keys()):
        raise BadArguments(f"unknown argument {unknown[0]!r}; there are: {', '.join(known) or 'none'}")
    if missing := [name for name in required if name not in given]:
        raise BadArguments(f"the argument {missing[0]!r} is missing")
    for name, value in given.items():
        _check(name, value, known[name])
    return given


def _check(name: str, value: Any, schema: Mapping[str, Any]) -> None:
    wanted = _TYPES.get(str(schema.get("type")), (object,))
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted and object not in wanted):
        raise BadArguments(f"the argument {name!r} must be of type {schema['type']}")
    if "enum" in schema and value not in schema["enum"]:
        raise BadArguments(f"the argument {name!r} must be one of {', '.join(map(str, schema['enum']))}")
    for item in value if isinstance(value, list) else ():
        _check(name, item, schema.get("items", {}))
