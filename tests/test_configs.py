"""Every file in configs/ trains as it stands, and says of itself what it does."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
from over import over

from apsvm import load_any_model
from apsvm.cli import run
from apsvm.oracles import ORACLES

FOLDER = Path(__file__).parents[1] / "configs"
#: Those of sorters are for scripts/reproduce/sodeep.py: see tests/torch_extra.
CONFIGS = sorted(path for path in FOLDER.glob("*.toml") if not path.stem.startswith("sodeep-"))


def likes(rng: np.random.Generator) -> list[str]:
    """Users who like items of one half or the other."""
    users = [10 * rng.integers(2) + rng.choice(10, size=4, replace=False) for _ in range(60)]
    return ["0 " + " ".join(f"{item + 1}:1" for item in sorted(items)) for items in users]


def rows(rng: np.random.Generator) -> list[str]:
    """Labels 1 and -1, the first of three features telling them apart."""
    return [
        f"{1 if x[0] > 1 else -1} " + " ".join(f"{at}:{value!r}" for at, value in enumerate(x.tolist(), 1))
        for x in rng.normal(size=(60, 3))
    ]


@over("config", CONFIGS, ids=lambda path: path.stem)
def test_config_trains(config, tmp_path, rng, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = tomllib.loads(config.read_text())
    users = options.get("rows-as-users", False)
    lines = likes(rng) if users else rows(rng)
    if options.get("latent"):
        lines = [line.replace(" ", f" bag:{bag} ", 1) for bag, line in enumerate(lines)]
    Path("data.svm").write_text("\n".join(lines))
    assert run(["train", "-q", "--config", str(config), "data.svm", "m"]) == 0
    model = load_any_model("m")
    scores = model.score(np.eye(model.width))
    if users:  # of one item each: those of the same half are the best, but for the item itself
        best = np.argmax(scores, axis=1)
        assert np.mean(best // 10 == np.arange(20) // 10) > 0.9
    else:
        positive = scores[:, -1] if scores.ndim == 2 else scores
        assert positive[0] > max(positive[1:])


@over("config", CONFIGS, ids=lambda path: path.stem)
def test_config_begins_with_what_it_is(config):
    assert config.read_text().startswith("# ")


def test_there_is_one_for_each_oracle_and_method_of_the_papers():
    found = [tomllib.loads(config.read_text()) for config in CONFIGS]
    oracles = {config.get("oracle") for config in found}
    papers = {"greedy", "search", "select", "search-select", "qs", "two-runs"}
    assert papers | {"appx", "bucket"} <= oracles
    assert papers <= set(ORACLES)
    losses = {config["loss"] for config in found}
    assert {"ap", "ndcg", "ndcg-chakrabarti", "zero-one", "auc", "wmw", "warp"} <= losses
    assert {config["tau"] for config in found if "tau" in config} == {"auc", "p@1", "p@10", "harmonic"}
    assert any(config.get("rows-as-users") for config in found)
