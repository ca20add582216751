"""A reasoning model may think aloud ahead of its answer, between marks: people are not shown it."""

OPEN, CLOSE = "<think>", "</think>"


class WithoutThinking:
    """Takes the fragments of an answer and gives back what is not thinking. Only what stands at the very beginning counts as such."""

    def __init__(self) -> None:
        self._held = ""
        self._state = "beginning"

    def add(self, fragment: str) -> str:
        """What of the answer may be shown now."""
        if self._state == "answering":
            return fragment
        self._held += fragment
        if self._state == "beginning":
            begun = self._held.lstrip()
            if begun.startswith(OPEN):
                self._state, self._held = "thinking", begun[len(OPEN) :]
            elif OPEN.startswith(begun):
                return ""
            else:
                return self._answering(self._held)
        _, mark, after = self._held.partition(CLOSE)
        if mark:
            return self._answering(after.lstrip())
        self._held = self._held[-len(CLOSE) :]
        return ""

    def rest(self) -> str:
        """What was held back when the answer ended; thinking that never ended is no answer."""
        held = self._held if self._state == "beginning" else ""
        self._held = ""
        return held

    def _answering(self, text: str) -> str:
        self._state, self._held = "answering", ""
        return text
