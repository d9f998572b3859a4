"""Tables read from text, and what was made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import scipy.sparse as sp

from apsvm.data import Dataset, read_data
from apsvm.data.read_options import TableOptions
from apsvm.models.columns import Columns, ForModel

SIMPLE = "age,city,paid,y\n31,Paris,true,1\n,Rome,false,0\n55,Paris,true,0\n28,,true,1\n"


def read(folder: Path, text: str | bytes, model: Columns | None = None, **options: Any) -> Dataset:
    path = folder / "data.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    unlabelled = bool(options.pop("unlabelled", False))
    wanted = None if model is None else ForModel(model, model.feature_names(), model.width)
    return read_data(path, table=TableOptions(**options), model=wanted, unlabelled=unlabelled)


def columns_of(data: Dataset) -> Columns:
    assert data.table is not None
    return data.table.columns


def remarks(data: Dataset) -> str:
    assert data.table is not None
    return "\n".join(data.table.remarks)


def rows(data: Dataset) -> list[list[float]]:
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    return X.tolist()
