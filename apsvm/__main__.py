"""``python -m apsvm``: the command."""

from apsvm.cli import main

main()
