"""Errors of the program's own files."""


class ModelError(ValueError):
    """A file that is not a whole, undamaged apsvm model; the message names the file and what is wrong."""


def require(condition: bool, expected: str) -> None:
    """Raises ModelError, "expected …", unless the condition holds."""
    if not condition:
        raise ModelError(f"expected {expected}")
