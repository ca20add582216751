"""`python -m bot`: start the bot, or do one thing from the command line."""

import sys

from bot.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
