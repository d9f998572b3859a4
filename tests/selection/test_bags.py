"""Bags in cross-validation: no fold parts one, and pools and trainers of bags are compared on the same."""

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from apsvm.data import Dataset, read_svmlight
from apsvm.data.bags import bags_of
from apsvm.data.labels import LabelOptions, decide, of_relevance, ordered
from apsvm.metrics.evaluate import parse_metrics
from apsvm.selection.folds import Fold, FoldError, make_folds
from apsvm.selection.grids import Grid
from apsvm.selection.search import SettingsSearch
from apsvm.trainers import trainer_of
from apsvm.trainers.base import Outcome, Trainer, TrainingSet, Watch
from apsvm.trainers.capabilities import Capabilities
from apsvm.trainers.fitting import FeatureOptions
from apsvm.trainers.settings import Settings


def never_parted(folds: list[Fold], ids: np.ndarray) -> None:
    assert sorted(np.concatenate([fold.test for fold in folds]).tolist()) == list(range(ids.size))
    for fold in folds:
        assert not set(ids[fold.test].tolist()) & set(ids[fold.training].tolist())
        assert np.array_equal(np.sort(np.concatenate(fold)), np.arange(ids.size))


@pytest.mark.parametrize("graded", [False, True])
def test_bags_of_rows_with_labels_of_their_own(graded: bool, rng: np.random.Generator) -> None:
    ids = rng.integers(0, 30, 200)
    labels = np.where(rng.random(200) < 0.06, rng.integers(1, 3, 200), 0).astype(float)
    target = ordered(labels) if graded else of_relevance(labels > 0)
    folds = make_folds(target, None, 5, 0, bags=ids)
    never_parted(folds, ids)
    positive = {one for one, relevant in zip(ids.tolist(), target.relevant, strict=True) if relevant}
    for fold in folds:  # each with its share of the bags that have a positive row
        assert abs(len(positive & set(ids[fold.test].tolist())) - len(positive) / 5) < 1
    assert not all(
        np.array_equal(a.test, b.test) for a, b in zip(folds, make_folds(target, None, 5, 1, bags=ids), strict=True)
    )


def test_bags_within_queries(rng: np.random.Generator) -> None:
    ids = rng.integers(0, 40, 300)
    target = of_relevance(rng.random(300) < 0.4)
    never_parted(make_folds(target, ids // 4, 3, 0, bags=ids), ids // 4)
    with pytest.raises(FoldError, match="has rows of several queries"):
        make_folds(target, np.arange(300) // 30, 3, 0, bags=ids)


def test_few_bags() -> None:
    """There are no more folds than bags of either class."""
    target = of_relevance(np.arange(70) < 30)
    folds = make_folds(target, None, 5, 0, bags=np.arange(70) // 10)
    assert len(folds) == 3
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(70))


def made(rng: np.random.Generator) -> Dataset:
    """60 bags of 1 to 5 rows, shuffled; one row of a positive bag is shifted along the first feature."""
    lines = []
    for bag in range(60):
        rows = rng.normal(size=(rng.integers(1, 6), 3))
        rows[0, 0] += 3.0 * (bag % 3 == 0)
        lines += [f"{int(bag % 3 == 0)} bag:{bag} 1:{a!r} 2:{b!r} 3:{c!r}" for a, b, c in rows.tolist()]
    return read_svmlight(io.BytesIO("\n".join(rng.permutation(lines)).encode()))


class BestRow(Trainer[Settings]):
    """A trainer of bags: the first feature is the score, whatever the rows."""

    family, title, losses = "best-row", "Best row", ("best-row",)
    capabilities = Capabilities(bags=True)

    def train(self, data: TrainingSet, watch: Watch, **more: Any) -> Iterator[Outcome]:
        assert data.bags is not None
        assert len(data.rows) == data.bags[-1]
        assert data.target.relevant.size == data.bags.size - 1
        yield Outcome(w=np.eye(data.rows.dimension)[0], settings=self.settings, state="done")


def grid(loss: str, pool: tuple[str, ...] | None) -> Grid:
    trainer = BestRow if loss == "best-row" else trainer_of(loss)
    named: dict[str, Any] = {} if loss == "best-row" else {"C": (1.0,), "bound": ("hinge",)}
    return Grid.of(lambda one: trainer(loss, one), trainer.Settings(), named, features=FeatureOptions(pool=pool))


def test_pools_and_a_trainer_of_bags_on_the_same_folds(rng: np.random.Generator) -> None:
    dataset = made(rng)
    grids = [grid("best-row", None), *(grid("ap", pool) for pool in (("max",), ("mean", "min")))]
    search = SettingsSearch(dataset, grids, parse_metrics(["AP"]), folds=4)
    search.run(jobs=1)
    candidates = search.candidates()
    assert [one.grid for one in candidates] == [0, 1, 2]
    assert [fit.n_columns for fit in search.fits] == [3, 3, 6]
    bags = bags_of(dataset)
    assert bags is not None
    assert sorted(np.concatenate([fold.test for fold in search.folds]).tolist()) == list(range(60))
    # By hand: the highest first feature of each bag, fold by fold.
    from sklearn.metrics import average_precision_score

    best = bags.best(np.asarray(dataset.X.toarray()[:, 0]))
    expected = [average_precision_score(bags.labels[fold.test], best[fold.test]) for fold in search.folds]
    np.testing.assert_allclose(candidates[0].values("AP"), expected, rtol=1e-12)
    assert search.description()["folds_of"] == "bags"
    chosen = search.choose(candidates[1:])
    refit = search.refit(chosen, candidates)
    assert refit is not None
    assert refit.model.header.features.pool == grids[chosen.grid].features.pool  # type: ignore[union-attr]


def test_judged_as_the_dataset_of_bags_is(rng: np.random.Generator) -> None:
    """A pooled grid alone and one beside a trainer of bags: the same folds, the same figures."""
    dataset = made(rng)
    alone = SettingsSearch(dataset, [grid("ap", ("max",))], parse_metrics(["AP"]), folds=3)
    beside = SettingsSearch(dataset, [grid("ap", ("max",)), grid("best-row", None)], parse_metrics(["AP"]), folds=3)
    for search in (alone, beside):
        search.run(jobs=1)
    assert alone.candidates()[0].values("AP") == beside.candidates()[0].values("AP")
    assert (
        decide(dataset, trainer_of("ap")("ap").capabilities.labels, LabelOptions()).relevant.size > 60
    )  # of rows, not of bags
