"""One database port, and the engines behind it."""
