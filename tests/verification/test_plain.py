"""The second implementation of the losses against the oracles, and what it may import."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

import apsvm.verification
from apsvm.losses import make_loss
from apsvm.oracles import make_oracle
from apsvm.verification.plain import UnknownLossError, definition_of, levels, ranking_by_score
from apsvm.verification.risk import Units
from tests.instances import loss_names

PACKAGE = Path(apsvm.verification.__file__).parent
#: Modules that nothing of apsvm's may stand behind, and what of other packages they need.
PLAIN = {"plain": {"numpy"}, "risk": {"numpy"}, "bound": {"numpy", "clarabel", "scipy"}}
#: Of the rest what is shared: reading, feature maps, scalings, models.
SHARED = {"data", "header", "model", "sparse", "types"}


def imports(path: Path) -> set[str]:
    """Every module that a file imports, wherever in it."""
    result = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            result |= {
                f"{node.module}.{alias.name}" if node.module == "apsvm" else str(node.module) for alias in node.names
            }
        elif isinstance(node, ast.Import):
            result |= {alias.name for alias in node.names}
    return result


def test_it_shares_nothing_with_what_trains():
    seen = set()
    for path in PACKAGE.glob("*.py"):
        for module in imports(path):
            first, *rest = module.split(".")
            if first == "apsvm" and rest[0] != "verification":
                assert path.stem not in PLAIN, module
                assert rest[0] in SHARED, module
                seen.add(rest[0])
            elif path.stem in PLAIN and first != "apsvm":
                assert first in PLAIN[path.stem] | sys.stdlib_module_names
    assert seen == SHARED


@pytest.mark.parametrize("name", loss_names())
def test_hinges_are_those_of_the_oracles(name):
    loss, definition, rng = make_loss(name), definition_of(name), np.random.default_rng(1)
    oracle, values = make_oracle("auto", loss), set()
    for trial in range(40):
        n_pos, n_neg = rng.integers(1, 12, size=2) if trial else (30, 90)
        scores = rng.normal(size=n_pos + n_neg) * 10 ** rng.uniform(-2, 2)
        scores = np.round(scores) if trial % 2 else scores  # ties
        expected = oracle.bind(loss, int(n_pos), int(n_neg))(
            scores[:n_pos].copy(), scores[n_pos:].copy(), np.empty(n_pos), np.empty(n_neg)
        )
        hinge = definition.hinge(scores[:n_pos], scores[n_pos:], None)
        assert hinge.value == pytest.approx(expected.value, rel=1e-12, abs=1e-12)
        at = hinge.loss + hinge.positives @ scores[:n_pos] + hinge.negatives @ scores[n_pos:]
        assert at == pytest.approx(hinge.value, rel=1e-9, abs=1e-12)
        # The plane is below the hinge elsewhere.
        there = rng.normal(size=n_pos + n_neg)
        elsewhere = definition.hinge(there[:n_pos], there[n_pos:], None)
        below = hinge.loss + hinge.positives @ there[:n_pos] + hinge.negatives @ there[n_pos:]
        assert below <= elsewhere.value + 1e-9 * (1.0 + abs(below))
        values.add(round(hinge.value, 6))
    assert len(values) > 10


def test_the_ranking_by_score():
    positives, negatives = np.array([1.0, -1.0, 2.0]), np.array([1.5, 0.0, -1.0])
    expected = 2 / 9 * sum(max(0.0, n - p) for p in positives for n in negatives)
    order = ranking_by_score(positives, negatives)
    assert order.value == pytest.approx(expected)
    assert order.positives.sum() == pytest.approx(-order.negatives.sum())


@pytest.mark.parametrize("name", ["ndcg", "ndcg(linear)", "ndcg@3", "ndcg-chakrabarti"])
def test_levels_of_grades(name):
    rng = np.random.default_rng(2)
    loss, definition = make_loss(name), definition_of(name)
    for _ in range(20):
        grades = rng.integers(-1, 4, size=8).astype(float)
        expected = [tuple(level) for level in loss.levels(grades)]
        assert levels(grades, definition) == [pytest.approx(level) for level in expected]


@pytest.mark.parametrize("name", ["warp", "rbp(x)", "f()", "own:Loss", "ap@", "p@-1", ""])
def test_unknown_losses(name):
    with pytest.raises(UnknownLossError, match="is not defined"):
        definition_of(name)


def test_where_bags_stand():
    """Of equal rows the first."""
    units = Units(5, np.array([4, 0, 1, 3, 2]), np.array([0, 2, 3]))
    assert units.best(np.array([1.0, 2.0, 5.0, 5.0, 1.0])).tolist() == [4, 1, 3]
