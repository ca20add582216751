"""What the bot is able to do: the turn, memory, documents; each a package with `register(registry)`."""
