"""``apsvm info``: what a model file tells of itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from apsvm.cli.shared import put, read_any_model


@click.command()
@click.argument("model", metavar="MODEL")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
def info(model: str, as_json: bool) -> None:
    """Print how MODEL was trained, on what, and its certificate."""
    import numpy as np

    ranker = read_any_model(model)
    weights = np.concatenate([getattr(ranker, name).ravel() for name in ranker.arrays])
    facts = {
        **ranker.header,
        "weights": {"nonzero": int(np.count_nonzero(weights)), "norm": float(np.linalg.norm(weights))},
    }
    if as_json:
        put(json.dumps(facts, indent=1, sort_keys=True))
        return
    lines = list(_flatten(facts))
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        put(f"{name:<{width}}  {value}")


def _flatten(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in sorted(facts.items()):
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
