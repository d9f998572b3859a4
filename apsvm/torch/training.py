"""Networks trained on a loss of this package: what ``apsvm train --net`` and the estimators share.

First a stage of cross-entropy, which finds a network from anywhere, then one on the loss that is requested, from the
best network of the first; Adam in both. After each epoch the metric of the rows that were held out says whether the
network is the best so far, of both stages. The features are standardised by the rows that are trained on, which is in
the first layer in the end. It takes one thread: the same seed gives the same bits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from apsvm.data.features.scaling import Scaling, learn_scaling
from apsvm.data.rows import Rows, RowsInMemory
from apsvm.models.net import Net
from apsvm.risk import NothingToRankError
from apsvm.solvers.sgd import Ending, Epoch, Pass, descend
from apsvm.torch.base import ListLoss
from apsvm.torch.blackbox import BlackboxAPLoss
from apsvm.torch.data import StratifiedBatchSampler
from apsvm.torch.hinge import DirectLoss, RankingHingeLoss, RankingRampLoss
from apsvm.torch.network import Adam, Network, device_of, one_thread
from apsvm.torch.smooth import SmoothAPLoss
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.epochs import validator_of_scores
from apsvm.trainers.nets.settings import NetLoss
from apsvm.trainers.stochastic import follow, not_finite

if TYPE_CHECKING:
    from apsvm.trainers.nets.trainer import NetTrainer

#: An epoch of few rows goes through them again until there were this many steps.
LEAST_STEPS = 10
#: Rows that are held out, and the others, have at least this many of each class, or this many queries; else none are.
LEAST_PER_CLASS = 2

#: Scores, target and queries, or None, to a number.
Criterion = Callable[[Tensor, Tensor, Tensor | None], Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class TrainedNet:
    """What a training came to.

    Attributes
    ----------
    net : after the best epoch, of the rows as the trainer was given them
    epochs : of both stages, numbered through
    best_epoch, ending, trouble : see ``apsvm.solvers.sgd.DescentOutcome``
    held_out : the rows that the best epoch was chosen by, or None
    """

    net: Net
    epochs: list[Epoch]
    best_epoch: int
    ending: Ending
    trouble: str | None
    held_out: TrainingSet | None


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Rows on a device.

    Attributes
    ----------
    X : (n, d) float32, standardised
    target : (n,) bool, or float32 grades
    qid : (n,) int64, or None
    members : the rows of each query that has rows to tell apart, (k,) int64 on the CPU; None without queries
    """

    X: Tensor
    target: Tensor
    qid: Tensor | None
    members: list[Tensor] | None

    @property
    def positive(self) -> Tensor:
        """(n,) bool."""
        return self.target > 0

    def at(self, batch: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Features, target and queries of some rows, (k,) int64; None: of all."""
        if batch is None:
            return self.X, self.target, self.qid
        batch = batch.to(self.X.device)
        return self.X[batch], self.target[batch], None if self.qid is None else self.qid[batch]

    @classmethod
    def of(cls, data: TrainingSet, X: Tensor) -> Examples:
        """Of a training set and its features. Raises NothingToRankError."""
        target = data.target.relevant if data.target.grades is None else data.target.grades.astype(np.float32)
        members = None if data.queries is None else [torch.from_numpy(rows) for rows in queries_to_rank(data)]
        if members == [] or (members is None and np.ptp(target.astype(np.float32)) == 0.0):
            raise NothingToRankError("no two rows of a query are to be told apart")
        return cls(
            X=X,
            target=torch.from_numpy(target).to(X.device),
            qid=None if data.queries is None else torch.from_numpy(data.queries).to(X.device),
            members=members,
        )


def train_net(
    data: TrainingSet, trainer: NetTrainer, watch: Watch, *, validation: TrainingSet | None = None
) -> TrainedNet:
    """Trains as ``trainer`` asks.

    Parameters
    ----------
    data : rows in memory
    validation : rows to choose the best epoch by; None: a share of ``data``, as the settings say

    Raises
    ------
    TrainingError, NothingToRankError : (ValueErrors) rows that cannot be trained on
    SettingsError : (a ValueError) a device that is not there
    FloatingPointError : feature values, or a learning rate, too large
    """
    settings = trainer.settings
    device, kept, held_out = device_of(settings.device), data, validation
    if validation is None and settings.held_out > 0.0:
        parts = hold_out(data, settings.held_out, np.random.default_rng(settings.seed))
        if parts is None:
            watch.remark("too few rows of a class, or queries, to hold some out: the last epoch is kept")
        else:
            kept, held_out = parts
    with one_thread():
        matrix, rows = _in_memory(kept)
        scaling = learn_scaling("standard", matrix, rows)
        generator = torch.Generator().manual_seed(settings.seed)
        network = Network([kept.rows.features, *settings.units, 1], device, generator)
        training = _NetTraining(
            network, Examples.of(kept, standardised(kept, scaling, device)), trainer, watch, generator
        )
        validate: Callable[[], float] | None = None
        if held_out is not None:
            metric = validator_of_scores(held_out, trainer.validation_metric)
            X = standardised(held_out, scaling, device)

            def validate() -> float:
                return metric(network.scores(X))

        training.run(validate)
        net = network.net(scaling)
    return TrainedNet(net, training.epochs, training.best_epoch, training.ending, training.trouble, held_out)


class _NetTraining:
    """The stages of a training, one after another, which leave the best parameters in the network."""

    def __init__(
        self, network: Network, examples: Examples, trainer: NetTrainer, watch: Watch, generator: torch.Generator
    ) -> None:
        self.epochs: list[Epoch] = []
        self.best_epoch = 0
        self.ending = Ending.EPOCHS_DONE
        self.trouble: str | None = None
        self._network, self._examples, self._trainer = network, examples, trainer
        self._watch, self._generator = watch, generator
        self._began = time.perf_counter()

    def run(self, validate: Callable[[], float] | None) -> None:
        """Cross-entropy, then the requested loss. Raises FloatingPointError where even the first epoch failed."""
        trainer, loss = self._trainer, self._trainer.net_loss
        if trainer.bce_epochs:
            self._stage(NetLoss.of("bce"), trainer.bce_epochs, validate)
        if not loss.is_bce and self.ending.as_asked:
            self._stage(loss, trainer.settings.net_epochs - trainer.bce_epochs, validate)

    def _stage(self, loss: NetLoss, epochs: int, validate: Callable[[], float] | None) -> None:
        settings, before, network = self._trainer.settings, len(self.epochs), self._network
        seconds_before = time.perf_counter() - self._began
        left = None if settings.time_limit is None else max(0.0, settings.time_limit - seconds_before)
        best_before = self._best_value

        def of_all_stages(epoch: Epoch) -> Epoch:
            return replace(
                epoch, number=before + epoch.number, seconds_in_all=seconds_before + epoch.seconds_in_all,
                best=epoch.best and (epoch.validation is None or epoch.validation > best_before),
            )  # fmt: skip

        def on_epoch(epoch: Epoch) -> None:
            self.epochs.append(of_all_stages(epoch))
            follow(self._watch, lambda one: self._trainer.show(one, loss.name), self.epochs[-1])

        start, optimiser = network.snapshot(), Adam(network.parameters, settings.rate)
        try:
            result = descend(
                self._passes(loss, optimiser),
                network.snapshot,
                epochs=epochs,
                validate=validate,
                patience=settings.net_patience,
                time_limit=left,
                on_epoch=on_epoch,
                should_stop=self._watch.should_stop,
            )
        except FloatingPointError as error:
            if not before:
                raise
            network.restore(start)
            self.ending, self.trouble = Ending.NUMERICAL_TROUBLE, str(error)
            return
        self.ending, self.trouble = result.ending, result.trouble
        best = self.epochs[before + result.best_epoch - 1]
        if best.best:
            network.restore(result.best)
            self.best_epoch = best.number
        else:
            network.restore(start)

    @property
    def _best_value(self) -> float:
        """Of the metric on the rows that are held out; −∞ before there is one."""
        value = self.epochs[self.best_epoch - 1].validation if self.best_epoch else None
        return -math.inf if value is None else value

    def _passes(self, loss: NetLoss, optimiser: Adam) -> Callable[[Callable[[], bool]], Pass]:
        """An epoch of a stage."""
        settings, network, examples = self._trainer.settings, self._network, self._examples
        criterion = criterion_of(loss)

        def one_pass(break_off: Callable[[], bool]) -> Pass:
            steps, rows, total = 0, 0, 0.0
            for batch in self._batches(loss):
                if steps and break_off():
                    break
                X, target, qid = examples.at(batch)
                value = criterion(network(X), target, qid)
                optimiser.step(value + 0.5 * settings.penalty * network.squares())
                steps, rows, total = steps + 1, rows + int(target.numel()), total + float(value.detach())
            if not (math.isfinite(total) and all(bool(part.isfinite().all()) for part in network.parameters)):
                raise not_finite("weights of the network")
            return Pass(draws=rows, trials=0, updates=steps, loss=total / steps)

        return one_pass

    def _batches(self, loss: NetLoss) -> Iterator[Tensor | None]:
        """The rows of each step of an epoch; None: all."""
        least, steps = LEAST_STEPS, 0
        while steps < least:
            for batch in self._round(loss):
                yield batch
                steps += 1

    def _round(self, loss: NetLoss) -> Iterator[Tensor | None]:
        """Every row once, about."""
        examples, size = self._examples, self._trainer.settings.batch_rows
        n = examples.target.numel()
        if not 0 < size < n:
            yield None
        elif loss.is_bce:
            yield from torch.randperm(n, generator=self._generator).split(size)
        elif examples.members is None:
            sampler = StratifiedBatchSampler(examples.positive.cpu(), max(2, size), generator=self._generator)
            yield from map(torch.tensor, sampler)
        else:
            yield from self._whole_queries(examples.members, size)

    def _whole_queries(self, members: Sequence[Tensor], size: int) -> Iterator[Tensor]:
        """Queries in a new order, each time as many as have ``size`` rows."""
        batch: list[Tensor] = []
        for query in torch.randperm(len(members), generator=self._generator).tolist():
            batch.append(members[query])
            if sum(rows.numel() for rows in batch) >= size:
                yield torch.cat(batch)
                batch = []
        if batch:
            yield torch.cat(batch)


def criterion_of(loss: NetLoss) -> Criterion:
    """What a network's scores are taken by."""
    match loss.kind:
        case "bce":
            return lambda scores, target, qid: nn.functional.binary_cross_entropy_with_logits(
                scores, (target > 0).to(scores.dtype)
            )
        case "module":
            module = loss.loss
        case "smooth-ap":
            module = SmoothAPLoss(tau=1.0)  # of logits; the width that was measured (``scripts/study/nets.py``)
        case "blackbox-ap":
            module = BlackboxAPLoss()
        case _:
            kinds = {"hinge": RankingHingeLoss, "ramp": RankingRampLoss, "direct": DirectLoss}
            module = kinds[loss.kind](loss.loss)
    takes_grades = isinstance(module, ListLoss) and module.takes_fractions
    return lambda scores, target, qid: module(scores, target if takes_grades else target > 0, qid=qid)  # type: ignore[operator]


def hold_out(data: TrainingSet, share: float, rng: np.random.Generator) -> tuple[TrainingSet, TrainingSet] | None:
    """What is trained on, and what is held out: ``share`` of the rows of each class, or of the queries; None where that
    leaves one of them without."""
    relevant = data.target.relevant
    if data.queries is None:
        strata = [list(np.flatnonzero(of_class)[:, None]) for of_class in (relevant, ~relevant)]
    else:
        strata = [queries_to_rank(data)]
    held: list[NDArray[np.int64]] = []
    for units in strata:
        count = round(share * len(units))
        if min(count, len(units) - count) < LEAST_PER_CLASS:
            return None
        held += [units[unit] for unit in rng.permutation(len(units))[:count]]
    out = np.zeros(relevant.size, dtype=bool)
    out[np.concatenate(held)] = True
    return data.select(np.flatnonzero(~out)), replace(data.select(np.flatnonzero(out)), source="held out")


def queries_to_rank(data: TrainingSet) -> list[NDArray[np.int64]]:
    """The rows of each query that has some to tell apart."""
    assert data.queries is not None
    worth = data.target.relevant.astype(np.float64) if data.target.grades is None else data.target.grades
    order = np.argsort(data.queries, kind="stable")
    starts = np.flatnonzero(np.diff(data.queries[order])) + 1
    return [rows for rows in np.split(order, starts) if np.ptp(worth[rows]) > 0.0]


def count_queries(data: TrainingSet) -> tuple[int | None, int | None]:
    """The queries that have rows to tell apart, and those that have none; None without queries."""
    if data.queries is None:
        return None, None
    count = len(queries_to_rank(data))
    return count, int(np.unique(data.queries).size) - count


def standardised(data: TrainingSet, scaling: Scaling, device: torch.device) -> Tensor:
    """The features as the network sees them, (n, d) float32. Raises FloatingPointError."""
    matrix, rows = _in_memory(data)
    chosen = matrix[rows]
    X = np.array(chosen.toarray() if hasattr(chosen, "toarray") else chosen, dtype=np.float64)
    assert scaling.centre is not None
    assert scaling.divisors is not None
    with np.errstate(over="ignore", invalid="ignore"):
        X -= scaling.centre
        X /= scaling.divisors
        narrow = X.astype(np.float32)
    if not np.isfinite(narrow).all():
        raise not_finite("standardised features")
    return torch.from_numpy(narrow).to(device)


def _in_memory(data: TrainingSet) -> RowsInMemory:
    assert isinstance(data.rows, Rows)  # checked
    return data.rows.in_memory()
