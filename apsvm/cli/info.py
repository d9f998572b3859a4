"""``apsvm info``: what a model file tells of itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from apsvm.cli.reading import read_any_model
from apsvm.cli.shared import put

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@click.command()
@click.argument("model", metavar="MODEL")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
def info(model: str, as_json: bool) -> None:
    """Print how MODEL was trained, on what, and its certificate; of a model of several classes, a line for each."""
    from apsvm.model import LinearRanker, RankerSet

    ranker = read_any_model(model)
    facts: dict[str, Any] = {**ranker.header.to_json(), "kind": ranker.kind, "width": ranker.width}
    if isinstance(ranker, RankerSet):
        facts["classes"] = [
            {**own.to_json(), "intercept": intercept, "weights": _weights(coef)}
            for own, intercept, coef in zip(ranker.headers, ranker.intercepts.tolist(), ranker.coef, strict=True)
        ]
    elif isinstance(ranker, LinearRanker):
        facts |= {"intercept": ranker.intercept, "weights": _weights(ranker.coef)}
    else:
        factors = ranker.factors
        facts["weights"] = _weights(factors.input, factors.output, factors.bias)
    if as_json:
        put(json.dumps(facts, indent=1, sort_keys=True))
        return
    each = facts.pop("classes", [])
    _put_table([[name, str(value)] for name, value in _flatten(facts)])
    if each:
        columns = [dict(_flatten(own)) for own in each]
        names = [name for name in columns[0] if all(_is_short(column.get(name)) for column in columns)]
        names.sort(key="labels.positive".__ne__)
        put("")
        _put_table([names, *([_shown(column[name]) for name in names] for column in columns)])


def _weights(*arrays: NDArray[np.floating]) -> dict[str, Any]:
    import numpy as np

    weights = np.concatenate([array.ravel() for array in arrays])
    return {"nonzero": int(np.count_nonzero(weights)), "norm": float(np.linalg.norm(weights))}


def _is_short(value: Any) -> bool:
    """Whether it has a place in a table: not missing, and no list."""
    return value is not None and not isinstance(value, list)


def _shown(value: Any) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _put_table(rows: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        put("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _flatten(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in sorted(facts.items()):
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
