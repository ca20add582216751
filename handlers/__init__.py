"""What a person can ask of the bot: a file per concern, each with `register(registry)`."""
