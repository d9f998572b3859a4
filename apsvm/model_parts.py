"""What the kinds of models share: the header as their files have it, and the shape of the rows that they score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from apsvm.header import Header, HeaderError, LabelKind, Labels
from apsvm.model_file import ModelError
from apsvm.types import JsonDict, JsonObject, Matrix

#: What stands in a file's header beside the fields of ``apsvm.header.Header``: the shape of the model itself.
_OF_THE_MODEL = ("kind", "width", "columns", "intercept", "factors", "units")


def header_in(content: JsonObject) -> Header:
    """The header that a file's content holds beside the shape of the model. Raises ModelError."""
    with _header_errors():
        # Schema 1 knew no header apart from the model.
        return Header.from_json(content if content["schema"] == 1 else _without_shape(content))


def _without_shape(content: JsonObject) -> JsonDict:
    return {key: value for key, value in content.items() if key not in _OF_THE_MODEL}


def shared_by_classes(whole: Header) -> Header:
    """What a class's header is compared with: no class has skipped classes of its own."""
    return replace(whole, classes_skipped=())


def headers_in(whole: JsonObject, classes: Sequence[JsonObject]) -> tuple[Header, list[Header]]:
    """The header of a set, and those of its classes from what each differs in. Raises ModelError."""
    if whole["schema"] == 1:
        return _headers_in_1(whole, classes)
    header = header_in(whole)
    shared = shared_by_classes(header)
    with _header_errors():
        return header, [Header.from_difference(_without_shape(difference), shared) for difference in classes]


def _headers_in_1(whole: JsonObject, classes: Sequence[JsonObject]) -> tuple[Header, list[Header]]:
    """The same of a file of schema 1, which did not say in the whole that there are classes."""
    from apsvm.header_1 import of_a_class, of_a_set

    header = header_in(of_a_set(whole))
    labels = Labels(kind=LabelKind.CLASSES, several=header.labels.several)
    return replace(header, labels=labels), [header_in(of_a_class(whole, difference)) for difference in classes]


@contextmanager
def _header_errors() -> Iterator[None]:
    """Turns what is wrong with a header into a ModelError."""
    try:
        yield
    except HeaderError as error:
        raise ModelError(f"its header is not a model's: {error}") from None


def check_shape(X: Matrix, width: int) -> None:
    """Raises ValueError unless X is (n, width)."""
    shape = np.shape(X)
    if len(shape) != 2 or shape[1] != width:
        raise ValueError(f"expected X of shape (n, {width}), found {shape}")
