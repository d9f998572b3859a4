"""The lines of docs/nets.md run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

PAGE = (Path(__file__).parents[2] / "docs" / "nets.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_lines_run():
    loop, lists, sorters = re.findall(r"^```py\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    torch.manual_seed(0)
    names = {
        "torch": torch,
        "network": torch.nn.Linear(3, 1),
        "features": torch.randn(200, 3),
        "target": torch.arange(200) % 10 == 0,
        "grades": torch.arange(200) % 4,
        "qid": torch.arange(200) // 20,
    }
    names["quality"] = names["features"] @ torch.tensor([2.0, -1.0, 0.5])
    of_rows = names | {"x": names["features"], "y": names["target"][:, None].float(), "dataset": range(200)}
    of_rows |= {"logits": torch.randn(200, 2), "labels": names["target"].long()}
    loop, of_two = loop.rsplit("loss = ", 1)
    exec(compile(loop, "nets.md", "exec"), of_rows)
    of_rows["loss"].backward()
    assert 0.0 < of_rows["loss"].item() < 1.0
    assert names["network"].weight.grad.any()
    assert next(iter(of_rows["loader"].batch_sampler)) != list(range(200))
    assert 0.0 < eval(of_two, of_rows).item() < 1.0
    of_lists, of_queries, *of_classes = lists.splitlines(keepends=True)
    padded = {"scores": torch.randn(4, 50), "target": torch.arange(200).reshape(4, 50) % 10 == 0}
    padded["mask"] = torch.arange(50).expand(4, 50) < 40
    of_query = names | {"scores": torch.randn(200)}
    classes = {"labels": torch.arange(200) % 5, "logits": torch.randn(200, 5), "x": torch.randn(200, 3)}
    classes |= {"network": torch.nn.Linear(3, 8), "last_layer": torch.nn.Linear(8, 5)}
    for text, given in ((of_lists, padded), (of_queries, of_query), ("".join(of_classes), classes)):
        values = of_rows | given
        exec(compile(text, "nets.md", "exec"), values)
        assert 0.0 < values["loss"].item() < 5.0
    exec(compile(sorters, "nets.md", "exec"), names)
    assert names["loss"].item() < 0.01  # one minus Spearman's correlation
