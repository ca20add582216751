"""Buttons: for their owner, in their chat, for a while."""

from bot.transports.telegram.buttons import MOST_BYTES, data_of, key_of, said_by
from bot.values import Choice

KEY = key_of("123456:token")
FORGET = Choice("Olvidar 1", "/forget id:0123456789abcdef0123456789abcdef", 86_400)
YES = Choice("Sí", "yes")
NOW = 1_790_000_000_000
OWNER, CHAT = "telegram:7", "telegram:7"


def _data(choice: Choice) -> str:
    data = data_of(KEY, choice, owner=OWNER, chat_key=CHAT, now_ms=NOW)
    assert data is not None
    return data


def test_a_press_says_what_the_choice_says() -> None:
    """The longest that the bot has fits; a question's buttons go with the press, a list's stay."""
    assert len(_data(FORGET).encode()) <= MOST_BYTES
    assert said_by(KEY, _data(FORGET), presser=OWNER, chat_key=CHAT, now_ms=NOW) == (FORGET.says, False)
    assert said_by(KEY, _data(YES), presser=OWNER, chat_key=CHAT, now_ms=NOW) == ("yes", True)


def test_another_person_another_chat_and_another_bot_press_in_vain() -> None:
    """The signature is over all of them."""
    data = _data(YES)

    assert said_by(KEY, data, presser="telegram:8", chat_key=CHAT, now_ms=NOW) is None
    assert said_by(KEY, data, presser=OWNER, chat_key="telegram:-5", now_ms=NOW) is None
    assert said_by(key_of("other"), data, presser=OWNER, chat_key=CHAT, now_ms=NOW) is None


def test_it_does_not_live_for_ever() -> None:
    """Five minutes for a question, to the minute."""
    assert said_by(KEY, _data(YES), presser=OWNER, chat_key=CHAT, now_ms=NOW + 299_000)
    assert said_by(KEY, _data(YES), presser=OWNER, chat_key=CHAT, now_ms=NOW + 361_000) is None


def test_a_forged_one_is_worth_nothing() -> None:
    """Whatever was changed in it, or made up."""
    data = _data(YES)

    for forged in ("", "x", data[:-1], data.replace("yes", "/forget_me"), "A" * 64, data[:8] + "!" + data[8:], "ñ" * 9 + ":"):
        assert said_by(KEY, forged, presser=OWNER, chat_key=CHAT, now_ms=NOW) is None


def test_what_does_not_fit_has_no_button() -> None:
    """The text says how to do without."""
    assert data_of(KEY, Choice("x", "/forget " + "ñ" * 40), owner=OWNER, chat_key=CHAT, now_ms=NOW) is None
