"""How words come in and go out: the terminal, and one HTTP server."""
