"""``python -m apsvm``: the command."""

from apsvm.cli import main

if __name__ == "__main__":
    main()
