"""The lines of docs/nets.md run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

PAGE = (Path(__file__).parents[2] / "docs" / "nets.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_lines_run():
    lines, estimators, sorters = re.findall(r"^```py\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    torch.manual_seed(0)
    names = {
        "network": torch.nn.Linear(3, 1),
        "features": torch.randn(200, 3),
        "target": torch.arange(200) % 10 == 0,
        "grades": torch.arange(200) % 4,
        "qid": torch.arange(200) // 20,
    }
    names["quality"] = names["features"] @ torch.tensor([2.0, -1.0, 0.5])
    exec(compile(lines, "nets.md", "exec"), names)
    assert 0.0 < names["loss"].item() < 3.0
    assert names["network"].weight.grad.any()
    assert len(names["batches"]) == 4
    exec(compile(sorters, "nets.md", "exec"), names)
    assert names["loss"].item() < 0.01  # one minus Spearman's correlation
    of_estimators = {
        "X": names["features"].numpy(),
        "y": names["target"].numpy(),
        "grades": names["grades"].numpy(),
        "qid": names["qid"].numpy(),
    }
    exec(compile(estimators, "nets.md", "exec"), of_estimators)
    assert of_estimators["classifier"].decision_function(of_estimators["X"]).shape == (200,)
    assert of_estimators["ranker"].predict(of_estimators["X"]).shape == (200,)
