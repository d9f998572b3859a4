"""Errors of the program's own files."""


class ModelError(ValueError):
    """A file that is not a whole, undamaged apsvm model; the message names the file and what is wrong."""
