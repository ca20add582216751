"""A message that people read, marked where no reader's language is known yet: `from bot import marked as _`."""


def marked(message: str) -> str:
    """The message itself. The catalogs find it by the mark; whoever shows it translates it."""
    return message
