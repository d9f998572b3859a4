"""A model's file runs no code: what its header calls its loss is a name, which nobody imports."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from command import in_process
from over import over

from apsvm import APSVMClassifier, APSVMRanker, RankNCG, WARPRanker, load_any_model, load_model

DANGER = """
import numpy as np

class Loss:
    def weights(self, n_pos):
        return np.full(n_pos, 1 / n_pos)

    def discount(self, n):
        return -np.arange(n, dtype=np.float64)
"""
NAMES = ["danger:Loss", "DANGER:Loss", "rbp(danger:Loss)", "ap@danger:Loss", "danger"]
ROWS = "1 1:2 2:1\n-1 1:1 2:2\n1 1:3 2:1\n-1 2:4\n"
X, Y = np.array([[2.0, 1], [1, 2], [3, 1], [0, 4]]), [1, -1, 1, -1]


@pytest.fixture
def danger(tmp_path, monkeypatch):
    """A module in the current folder that must not be imported."""
    (tmp_path / "danger.py").write_text(DANGER)
    (tmp_path / "rows").write_text(ROWS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    yield
    imported = "danger" in sys.modules
    sys.modules.pop("danger", None)
    assert not imported, "a file's word was imported"


def stored(name, family, metric):
    """A model whose file says all that."""
    model = APSVMClassifier(C=1.0).fit(X, Y).to_model()
    replace(model, header=replace(model.header, loss=name, family=family, metric=metric)).save("model")


@over("metric", ["AP", None])
@over("family", ["structured-svm", "rank-ncg", "warp", ""])
@over("name", NAMES)
def test_estimators_take_it_for_a_name(name, family, metric, danger):
    stored(name, family, metric)
    for kind in (APSVMClassifier, APSVMRanker, RankNCG, WARPRanker):
        try:
            estimator = kind.from_model(load_model("model"))
        except (ValueError, TypeError):
            continue
        estimator.decision_function(X)
        repr(estimator)
        for use in (estimator.fit, estimator.score):
            with suppress(ValueError):
                use(X, Y)


def test_an_estimator_says_what_it_lacks(danger):
    stored("danger:Loss", "structured-svm", None)
    estimator = APSVMClassifier.from_model(load_model("model"))
    with pytest.raises(ValueError, match=r"to train again, pass the model's loss, APSVM"):
        estimator.fit(X, Y)


def test_the_caller_can_pass_the_loss_itself(danger):
    stored("danger:Loss", "structured-svm", None)
    made: dict[str, type] = {}
    exec(DANGER, made)
    estimator = APSVMClassifier.from_model(load_model("model"), loss=made["Loss"])
    assert estimator.set_params(C=1.0, bound="hinge").fit(X, Y).score(X, Y) == 1.0


@over(
    "arguments",
    [
        ("info", "model"),
        ("info", "model", "--json"),
        ("predict", "rows", "model", "-"),
        ("eval", "rows", "--model", "model"),
        ("export", "model", "-", "--format", "json"),
        ("plot", "pr", "rows", "--model", "model", "-o", "picture.svg"),
    ],
    ids=lambda arguments: " ".join(arguments[:1]),
)
def test_commands_take_it_for_a_name(arguments, danger):
    stored("danger:Loss", "structured-svm", None)
    assert load_any_model("model").header.loss == "danger:Loss"
    done = in_process(list(arguments), env={})
    assert done.returncode in (0, 3), done.stderr
