"""The second implementation of the losses against the oracles, and what it may import."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
from over import over

import apsvm.verification
from apsvm.cli.commands.verify import definition_of_package
from apsvm.losses import make_loss
from apsvm.oracles import make_oracle
from apsvm.verification.plain import (
    Definition,
    RankingDefinition,
    UnknownLossError,
    definition_of,
    hinge_of_rankings,
    levels,
    ranking_by_score,
)
from apsvm.verification.risk import Units
from tests.instances import LOSS_NAMES, RANKING_LOSSES

PACKAGE = Path(apsvm.verification.__file__).parent
#: Modules that nothing of apsvm's may stand behind, and what of other packages they need.
PLAIN = {"exact": {"numpy"}, "plain": {"numpy"}, "risk": {"numpy"}, "bound": {"numpy", "clarabel", "scipy"}}
#: Of the rest what is shared: reading, feature maps, scalings, models.
SHARED = {"data", "models", "_support.sparse", "_support.types"}


def imports(path: Path) -> set[str]:
    """Every module that a file imports, wherever in it."""
    result = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            result |= {
                f"{node.module}.{alias.name}" if node.module in ("apsvm", "apsvm._support") else str(node.module)
                for alias in node.names
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
                part = ".".join(rest[:2]) if rest[0] == "_support" else rest[0]
                assert part in SHARED, module
                seen.add(part)
            elif path.stem in PLAIN and first != "apsvm":
                assert first in PLAIN[path.stem] | sys.stdlib_module_names
    assert seen == SHARED


def definition(name: str) -> Definition:
    """The plain one; of a newcomer what verification takes instead; where there is neither, a skipped test."""
    try:
        return definition_of(name)
    except UnknownLossError as error:
        elsewhere = definition_of_package(name)
        return elsewhere or pytest.skip(f"{error}, and it is not of two arrays")


def test_which_losses_are_defined_without_the_package():
    """Where one is not, the package's own definition would be compared with itself below."""
    simple = ("ap", "ndcg", "ndcg(linear)", "ndcg-chakrabarti", "mrr", "auc", "prbep", "f1", "zero-one")
    for name in (*simple, "rbp(0.8)", "pauc(0.1)", "f(2.0)", "p@3", "ndcg@3", "set-p@3", "set-r@3"):
        definition_of(name)


@over("name", LOSS_NAMES)
def test_hinges_are_those_of_the_oracles(name):
    loss, plain, rng = make_loss(name), definition(name), np.random.default_rng(1)
    oracle, values = make_oracle("auto", loss), set()
    for trial in range(40):
        n_pos, n_neg = rng.integers(1, 12, size=2) if trial else (30, 90)
        scores = rng.normal(size=n_pos + n_neg) * 10 ** rng.uniform(-2, 2)
        scores = np.round(scores) if trial % 2 else scores  # ties
        expected = oracle.bind(loss, int(n_pos), int(n_neg))(
            scores[:n_pos].copy(), scores[n_pos:].copy(), np.empty(n_pos), np.empty(n_neg)
        )
        hinge = plain.hinge(scores[:n_pos], scores[n_pos:], None)
        assert hinge.value == pytest.approx(expected.value, rel=1e-12, abs=1e-12)
        at = hinge.loss + hinge.positives @ scores[:n_pos] + hinge.negatives @ scores[n_pos:]
        assert at == pytest.approx(hinge.value, rel=1e-9, abs=1e-12)
        # The plane is below the hinge elsewhere.
        there = rng.normal(size=n_pos + n_neg)
        elsewhere = plain.hinge(there[:n_pos], there[n_pos:], None)
        below = hinge.loss + hinge.positives @ there[:n_pos] + hinge.negatives @ there[n_pos:]
        assert below <= elsewhere.value + 1e-9 * (1.0 + abs(below))
        values.add(round(hinge.value, 6))
    assert len(values) > 10


def highest(u, D, positives, negatives):
    """max Σ_k gain_k(n_k) over n_1 ≤ … ≤ n_P, whatever D is: M_k(n) = max_{m ≤ n} M_{k−1}(m) + gain_k(n)."""
    P, N = positives.size, negatives.size
    sums, n, best = np.append(0.0, np.cumsum(-np.sort(-negatives))), np.arange(N + 1), np.zeros(N + 1)
    for k, score in enumerate(-np.sort(-positives)):
        gain = u[k] * (D[k] - D[k : k + N + 1]) - 2.0 / (P * N) * (n * score - sums)
        best = np.maximum.accumulate(best) + gain
    return best.max()


@over("scale", [0.001, 0.01, 1.0])
@over("name", [name for name in RANKING_LOSSES if not name.startswith("pauc")])  # nothing is pooled there
def test_pooling_and_a_dynamic_programme_agree(name, scale):
    """On lists where pools are large: of scores in no order that the loss would want."""
    plain, rng = definition(name), np.random.default_rng(4)
    assert isinstance(plain, RankingDefinition)
    split = plain.split
    for trial in range(40):
        n_pos, n_neg = rng.integers(1, 60, size=2)
        u, D = plain.weights(n_pos, n_neg), plain.discount(n_pos + n_neg, n_neg)
        u = rng.random(n_pos) if trial % 2 and not split else u  # in no order either
        positives, negatives = rng.normal(size=n_pos) * scale, rng.normal(size=n_neg) * scale
        if trial % 3 == 0:  # ties
            positives, negatives = np.round(positives / scale) * scale, np.round(negatives / scale) * scale
        hinge = hinge_of_rankings(u, D, positives, negatives, split=split)
        assert hinge.value == pytest.approx(highest(u, D, positives, negatives), rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("split", [1, 2, 5, 9, 13])
def test_two_convex_parts(split):
    """Whatever they are, a part may be longer than the positives or the negatives are many."""
    rng, seen = np.random.default_rng(5), set()
    for _ in range(150):
        n_pos, n_neg = rng.integers(1, 15, size=2)
        n, u = n_pos + n_neg, np.full(n_pos, 10.0 ** rng.uniform(-4, 0))
        falls = np.concatenate([-np.sort(-rng.random(size)) for size in (min(split, n), max(0, n - split))])
        falls[split : split + 1] = rng.choice([0.0, 0.5, 3.0])
        D = -np.cumsum(falls)
        positives, negatives = (
            np.round(rng.normal(size=size), 1) / rng.choice([1, 10, 100]) for size in (n_pos, n_neg)
        )
        hinge = hinge_of_rankings(u, D, positives, negatives, split=split)
        assert hinge.value == pytest.approx(highest(u, D, positives, negatives), rel=1e-12, abs=1e-13)
        above = np.sort(np.rint(hinge.positives * n_pos * n_neg / -2.0))
        seen.add(np.count_nonzero(np.arange(1, n_pos + 1) + above <= split))
    assert len(seen) > min(split, 8)  # as many positives may stand in the first part


def test_the_ranking_by_score():
    positives, negatives = np.array([1.0, -1.0, 2.0]), np.array([1.5, 0.0, -1.0])
    expected = 2 / 9 * sum(max(0.0, n - p) for p in positives for n in negatives)
    order = ranking_by_score(positives, negatives)
    assert order.value == pytest.approx(expected)
    assert order.positives.sum() == pytest.approx(-order.negatives.sum())


@pytest.mark.parametrize("name", ["ndcg", "ndcg(linear)", "ndcg@3", "ndcg-chakrabarti"])
def test_levels_of_grades(name):
    rng = np.random.default_rng(2)
    loss, plain = make_loss(name), definition_of(name)
    for _ in range(20):
        grades = rng.integers(-1, 4, size=8).astype(float)
        expected = [tuple(level) for level in loss.levels(grades)]
        assert levels(grades, plain) == [pytest.approx(level) for level in expected]


@pytest.mark.parametrize("name", ["warp", "rbp(x)", "f()", "own:Loss", "ap@", "p@-1", ""])
def test_unknown_losses(name):
    with pytest.raises(UnknownLossError, match="is not defined"):
        definition_of(name)


def test_where_bags_stand():
    """Among equal rows the first is taken."""
    units = Units(5, np.array([4, 0, 1, 3, 2]), np.array([0, 2, 3]))
    assert units.best(np.array([1.0, 2.0, 5.0, 5.0, 1.0])).tolist() == [4, 1, 3]
    assert units.best(np.array([1.0, np.nan, -np.inf, np.nan, np.nan])).tolist() == [0, 1, 3]
