"""The tests that ``--quick`` leaves out, each for taking half a second or more: ``file::test``, below tests/."""

SLOW = frozenset[str]()
