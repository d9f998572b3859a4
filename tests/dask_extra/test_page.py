"""The lines of docs/cluster.md run."""

from __future__ import annotations

import re
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_lines_run(client, rng):
    (lines,) = re.findall(r"^```py\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    X = rng.normal(size=(600, 3))
    y = X[:, 0] + rng.normal(size=600) > 1.0
    names = {name: da.from_array(X, (200, -1)) for name in ("X", "X_test")}
    names |= {name: da.from_array(y, 200) for name in ("y", "y_test")}
    here = lines.replace("tcp://10.0.0.1:8786", client.scheduler.address)
    assert here != lines
    exec(compile(here, "cluster.md", "exec"), names)
    assert names["model"].certificate_.reached
    assert client.compute(names["scores"]).result().shape == np.shape(y)
