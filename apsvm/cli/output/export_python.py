"""``apsvm export --format python``: a file that scores rows with Python's standard library alone.

It is the source of ``standalone``, of what that imports of this package, and the model as JSON in it.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from apsvm._support.shown import as_json
from apsvm._support.types import JsonDict
from apsvm.cli.output import standalone
from apsvm.cli.output.export_json import json_of, rankers_of, table_of
from apsvm.cli.shared import BAD_DATA, Failure
from apsvm.data.features.joined import Joined
from apsvm.data.features.linear import Linear
from apsvm.data.tables import cells, dates, written_numbers
from apsvm.models.columns import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apsvm.data.features.base import FeatureMap
    from apsvm.models.base import Model

_FROM_HERE = (
    "from apsvm.data.tables.cells import MISSING_WORDS\n",
    "from apsvm.data.tables.dates import days_of\n",
    "from apsvm.data.tables.written_numbers import number_of\n",
    "from apsvm.models.columns import EXAMPLES\n",
)
_NO_MODEL = 'json.loads("{}")'


def python_text(stored: Model, positive_label: float | str | None, name: str) -> str:
    """The file of the model in the file ``name``, or of one of its classes. Ends the command where a row has no score
    of its own, or there is none in plain Python."""
    if stored.header.features.pool is not None:
        raise Failure(BAD_DATA, f"{name}: it ranks bags (--pool), and --format python scores single rows")
    rankers = rankers_of(stored, positive_label, name)
    first, several = rankers[0], len(rankers) > 1 or (stored.has_classes and positive_label is None)
    features = first.header.features
    shown = [json_of(ranker) for ranker in rankers]
    if several:
        for one, label in zip(shown, stored.classes.tolist(), strict=True):
            one["name"] = stored.header.shown_label(label)
    content = {
        "several": ("labels" if stored.header.labels.several else "classes") if several else "",
        "width": first.width,
        "names": [] if features.names is None else list(features.names),
        "first_feature": 0 if first.zero_based else 1,
        "unit_rows": first.unit_rows,
        "table": None if features.columns is None else table_of(features.columns),
        "features": list(_maps(first.feature_map or Linear(first.width))),
        "rankers": shown,
    }
    code = inspect.getsource(standalone)
    for line in _FROM_HERE:
        assert line in code
        code = code.replace(line, "")
    json_in_code = f"json.loads({as_json(content, allow_nan=False)!r})"
    first_line, _, rest = code.partition("\nMODEL: ")
    return f"{first_line}\n{_written_here()}\n\nMODEL: {rest.replace(_NO_MODEL, json_in_code, 1)}"


def _maps(feature_map: FeatureMap) -> Iterator[JsonDict]:
    """What stands side by side, each with its arrays and number of columns."""
    for one in feature_map.maps if isinstance(feature_map, Joined) else (feature_map,):
        arrays = {key: array.tolist() for key, array in one.arrays().items()}
        yield {"kind": one.stem, "columns": one.n_out, **arrays}


def _written_here() -> str:
    """How missing cells, and numbers and dates in words, are read."""
    patterns = {style: pattern.pattern for style, pattern in written_numbers._PATTERNS.items()}
    return "\n".join(
        [
            f"_YEAR_FIRST = re.compile({dates._YEAR_FIRST.pattern!r})",
            f"_YEAR_LAST = re.compile({dates._YEAR_LAST.pattern!r})",
            f"_TIME_ALONE = re.compile({dates._TIME_ALONE.pattern!r})",
            f"_MONTHS = {dates._MONTHS!r}",
            f"_EPOCH = {dates._EPOCH}",
            f"EXAMPLES = {EXAMPLES!r}",
            f"MISSING_WORDS = {cells.MISSING_WORDS!r}",
            f"DECIMAL = {written_numbers.DECIMAL!r}",
            f"_PATTERNS = {{style: re.compile(pattern) for style, pattern in {patterns!r}.items()}}",
            "",
            "",
            inspect.getsource(dates.days_of),
            "",
            inspect.getsource(written_numbers.number_of),
        ]
    )
