"""Training sets of bags: rows bag by bag, and target, queries and costs of the bags."""

import io
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from apsvm.data import read_svmlight
from apsvm.data.dataset import DataError
from apsvm.data.labels import LabelOptions
from apsvm.trainers import trainer_of
from apsvm.trainers.base import Outcome, Trainer, TrainingSet, Watch
from apsvm.trainers.capabilities import Capabilities
from apsvm.trainers.fitting import FeatureOptions, Fit

TEXT = (
    b"1 qid:1 bag:7 cost:2 1:1\n0 qid:1 bag:9 1:2\n1 qid:1 bag:7 cost:2 1:3\n"
    b"0 qid:2 bag:8 1:4\n1 qid:2 bag:6 1:5\n0 qid:1 bag:9 1:6\n"
)


class OfBags(Trainer[Any]):
    """A trainer that wants bags and does nothing with them."""

    family: ClassVar[str] = "of bags"
    title: ClassVar[str] = "Of bags"
    losses: ClassVar[tuple[str, ...]] = ("of-bags",)
    capabilities = Capabilities(bags=True)

    def train(self, data: TrainingSet, watch: Watch, **more: Any) -> Iterator[Outcome]:
        yield from ()


def fit(trainer: Any, **more: Any) -> Fit:
    dataset = read_svmlight(io.BytesIO(TEXT))
    return Fit.of(dataset, trainer, LabelOptions(), FeatureOptions(), **more).prepared()


def seen(data: TrainingSet) -> list[float]:
    result: list[float] = data.rows.scores(np.ones(1)).tolist()
    return result


@pytest.mark.parametrize("validation", [False, True])
def test_rows_bag_by_bag(validation: bool) -> None:
    whole = fit(OfBags("of-bags"))
    data = whole.training_set()
    if validation:
        held_out = fit(OfBags("of-bags"), validation=(whole.dataset, whole.target)).held_out()
        assert held_out is not None
        data = held_out
    assert data.bags is not None
    assert data.bags.tolist() == [0, 2, 4, 5, 6]
    assert seen(data) == [1, 3, 2, 6, 4, 5]
    assert data.target.relevant.tolist() == [True, False, False, True]
    assert data.queries is not None
    assert data.queries.tolist() == [1, 1, 2, 2]
    if not validation:
        assert data.costs is not None
        assert data.costs.tolist() == [2, 1, 1, 1]


def test_a_selection_of_rows() -> None:
    data = fit(OfBags("of-bags"), selection=np.array([1, 3, 4, 5])).training_set()
    assert data.bags is not None
    assert data.bags.tolist() == [0, 2, 3, 4]
    assert seen(data) == [2, 6, 4, 5]
    assert data.target.relevant.tolist() == [False, False, True]
    assert data.queries is not None
    assert data.queries.tolist() == [1, 2, 2]


def test_any_other_trainer_must_be_told_what_becomes_of_them() -> None:
    with pytest.raises(DataError, match="rows have bag ids: choose"):
        fit(trainer_of("ap")("ap"))
