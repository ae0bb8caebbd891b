"""``python -m gcaps`` is ``gcaps``."""

from gcaps.cli.app import main

if __name__ == "__main__":
    main()
