"""A user's own script sees the types: what it sees is checked with the package, ``tests/typed``."""

from importlib.resources import files


def test_the_types_are_shipped():
    assert files("apsvm").joinpath("py.typed").is_file()
