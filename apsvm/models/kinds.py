"""The kinds of models, and reading them: arrays and a header (``models.header``), which is all that their files hold.

``LinearRanker``: a weight a feature and a constant. ``ComponentRanker``: the best of several weight vectors.
``RankerSet``: one of either for each of several classes. ``NetRanker``: dense layers. ``ItemRanker``: factors of items,
for users known by what they like. The header of a file says in ``kind`` which of them it is; without one it is a linear
ranker.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any, TypeAlias

from apsvm.files import standard_input
from apsvm.models.base import Model as Model
from apsvm.models.base import Ranker as Ranker
from apsvm.models.base import RowModel as RowModel
from apsvm.models.base import WeightedRanker as WeightedRanker
from apsvm.models.components import ComponentRanker as ComponentRanker
from apsvm.models.container import MAGIC, check_field, member_names, unsealed
from apsvm.models.container import ModelError as ModelError
from apsvm.models.header import SCHEMA
from apsvm.models.items import ItemFactors as ItemFactors
from apsvm.models.items import ItemRanker as ItemRanker
from apsvm.models.linear import LinearRanker as LinearRanker
from apsvm.models.map import OF_THE_MAP
from apsvm.models.net import Net as Net
from apsvm.models.net import NetRanker as NetRanker
from apsvm.models.sets import RANKERS_OF_SETS
from apsvm.models.sets import RankerSet as RankerSet

#: A set of rankers of any kind.
AnyRankerSet: TypeAlias = RankerSet[Any]
#: By what a file's header calls them.
_KINDS: dict[str, type[Model]] = {
    **{kind.kind: kind for kind in (LinearRanker, ItemRanker, ComponentRanker, NetRanker)},
    **dict.fromkeys(RANKERS_OF_SETS, RankerSet),
}


def load_model(path: str | os.PathLike[str]) -> LinearRanker:
    """Reads a linear ranker (``-``: from standard input); never executes code.

    Raises
    ------
    OSError : the file cannot be read
    ModelError : it is not a whole, undamaged model of a schema this version knows, or it is another kind of model
    """
    model = load_any_model(path)
    if not isinstance(model, LinearRanker):
        raise ModelError(f"{_shown(path)}: expected {LinearRanker.what}, found {model.what}")
    return model


def load_any_model(path: str | os.PathLike[str]) -> Model:
    """``load_model`` for a model of any kind."""
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


def _shown(path: str | os.PathLike[str]) -> str:
    name = os.fspath(path)
    return "<stdin>" if name == "-" else name


def _parse(content: bytes) -> Model:
    header, arrays = unsealed(content)
    kind = _KINDS[_kind_of(header)]
    expected = kind.arrays_in(header)
    if [name for name in arrays if not name.startswith(OF_THE_MAP)] != list(expected):
        members = ", ".join(member_names(expected))
        raise ModelError(f"expected the members {members}, found {', '.join(member_names(arrays))}")
    return kind.from_parts(header, arrays)


def _kind_of(content: object) -> str:
    """What the header calls the model, which a file of schema 1 need not say where it is linear."""
    if not isinstance(content, dict):
        raise ModelError("its header is not a JSON object")
    check_field(content, "schema", int)
    if content["schema"] not in (1, SCHEMA):
        raise ModelError(
            f"schema {content['schema']!r} is not known to this version of apsvm (it knows 1 and {SCHEMA})"
        )
    check_field(content, "width", int)
    kind = content.get("kind", LinearRanker.kind)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ModelError(f"kind {kind!r} is not known to this version of apsvm (it knows {', '.join(_KINDS)})")
    return kind
