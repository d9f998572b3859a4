"""Reading model files of any kind: ``load_any_model``.

The field ``kind`` of a file's header is a key of ``KINDS``; without it the model is a linear ranker.
"""

from __future__ import annotations

import os
from contextlib import nullcontext

from apsvm._support.container import MAGIC, unsealed
from apsvm._support.errors import ModelError, require
from apsvm._support.files import standard_input
from apsvm.models.averages import members_of
from apsvm.models.base import Model
from apsvm.models.components import ComponentRanker
from apsvm.models.content import content_of
from apsvm.models.items import ItemRanker
from apsvm.models.linear import LinearRanker
from apsvm.models.net import NetRanker
from apsvm.models.sets import KINDS_OF_SETS, RankerSet

#: Kinds of models, by their names in files.
KINDS: dict[str, type[Model]] = {
    **{kind.kind: kind for kind in (LinearRanker, ItemRanker, ComponentRanker, NetRanker)},
    **{name: RankerSet for name, _ in KINDS_OF_SETS.values()},
}


def load_model(path: str | os.PathLike[str]) -> LinearRanker:
    """Read a linear ranker. Reading never executes code.

    Parameters
    ----------
    path : str or path-like
        The file; ``-`` is standard input.

    Raises
    ------
    OSError
        The file cannot be read.
    ModelError
        The file is damaged, no model, a model of another version's schema, or a model of another kind.
    """
    model = load_any_model(path)
    if not isinstance(model, LinearRanker):
        raise ModelError(f"{_shown(path)}: expected {LinearRanker.description}, found {model.description}")
    return model


def load_any_model(path: str | os.PathLike[str]) -> Model:
    """``load_model`` for models of any kind."""
    name = _shown(path)
    with nullcontext(standard_input()) if os.fspath(path) == "-" else open(path, "rb") as stream:
        start = stream.read(len(MAGIC))
        # Do not read gigabytes of something else.
        if start != MAGIC:
            raise ModelError(f"{name}: not an apsvm model (no zip archive)")
        content = start + stream.read()
    try:
        return _parse(content)
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from None


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """True if the file begins like a model file: a zip with a first member header.npy, which other archives of arrays
    lack. It may still be damaged. Raises OSError."""
    with open(path, "rb") as stream:
        begin = stream.read(40)
    return begin.startswith(MAGIC) and begin.endswith(b"header.npy")


def _shown(path: str | os.PathLike[str]) -> str:
    name = os.fspath(path)
    return "<stdin>" if name == "-" else name


def _parse(content: bytes) -> Model:
    fields, arrays = unsealed(content)
    require(isinstance(fields, dict), "a JSON object as its header")
    name = fields.get("kind", LinearRanker.kind)
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ModelError(f"kind {name!r} is not known to this version of apsvm (it knows {', '.join(KINDS)})")
    parts = content_of(fields, arrays, kind.dtype)
    model = kind.of_content(parts)
    parts.require_all_taken()
    require(model.kind == name, f"{model.kind!r} in 'kind', found {name!r}")
    if model.header.members:
        if not isinstance(model, LinearRanker):
            raise ModelError(f"its header has 'members', and {model.description} cannot be an average")
        members_of(model)
    return model
