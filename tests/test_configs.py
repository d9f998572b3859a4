"""Every file in configs/ trains as it stands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from apsvm import load_model
from apsvm.cli import run

CONFIGS = sorted((Path(__file__).parents[1] / "configs").glob("*.toml"))


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_config_trains(config, tmp_path, rng, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(60, 3))
    rows = [
        f"{1 if x[0] > 1 else -1} " + " ".join(f"{at}:{value!r}" for at, value in enumerate(x.tolist(), 1)) for x in X
    ]
    Path("data.svm").write_text("\n".join(rows))
    assert run(["train", "-q", "--config", str(config), "data.svm", "m"]) == 0
    assert np.isfinite(load_model("m").coef).all()


def test_there_are_configs():
    assert len(CONFIGS) >= 4
