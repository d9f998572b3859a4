"""WARP beside the exact losses, and on implicit feedback beside popularity, EASE, LightFM and the ``implicit`` package.

    python scripts/study/warp.py rank TRAIN [TEST] [--relevant-from GRADE]
    python scripts/study/warp.py users DATA [--strongest N] [--factors 32]

rank: svmlight files; without TEST a third of TRAIN's rows (of its queries, if it has any) is held out. Every method is
trained with several settings on two thirds of the training rows, the one with the best AP on the rest is trained on all
of them, and the test metrics of that are printed: C for the exact losses, learning rate and L2 penalty for WARP.

users: rows are users, columns of positive value what they like (``--strongest N``: the N largest values of each row).
A fifth of each row is hidden and is to be found among the other items. WARP's learning rate is chosen on a fifth of
the rest, as is the setting of EASE, of LightFM and of each model of ``implicit``, where those are installed.

One thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from threadpoolctl import threadpool_limits

from apsvm import read_svmlight
from apsvm.data.labels import of_relevance
from apsvm.data.liked import hide, liked_items
from apsvm.data.rows import Rows
from apsvm.losses import LOSSES
from apsvm.metrics.evaluate import evaluate
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer
from apsvm.trainers.warp.item_factors import evaluate_lists, popularity, train_items
from apsvm.trainers.warp.settings import WarpSettings
from apsvm.trainers.warp.trainer import WarpTrainer

METRICS = ["P@1", "P@10", "nDCG@10", "AP", "AUC"]
EXACT = [name for name in ("ap", "ndcg", "zero-one") if name in LOSSES]
TAUS = ["auc", "harmonic", "p@10", "p@1"]
RATES = [0.01, 0.05, 0.2]


@dataclass(frozen=True)
class Part:
    """Some rows, and what is relevant of them."""

    X: sp.csr_array
    relevant: np.ndarray
    groups: np.ndarray | None

    def take(self, which: np.ndarray) -> Part:
        return Part(self.X[which], self.relevant[which], None if self.groups is None else self.groups[which])

    def split(self, seed: int) -> tuple[Part, Part]:
        rows = np.arange(self.relevant.size)
        if self.groups is None:
            first, second = train_test_split(rows, test_size=1 / 3, stratify=self.relevant, random_state=seed)
        else:
            cut = GroupShuffleSplit(1, test_size=1 / 3, random_state=seed)
            first, second = next(cut.split(rows, groups=self.groups))
        return self.take(first), self.take(second)

    def training_set(self) -> TrainingSet:
        # The 0-1 loss needs the constant; the others ignore it.
        return TrainingSet(Rows(self.X, bias=1.0), of_relevance(self.relevant), self.groups)

    def measure(self, w: np.ndarray, metrics: list[str]) -> list[float]:
        scores = Rows(self.X, bias=1.0).scores(w)
        return list(evaluate(metrics, scores, self.relevant, groups=self.groups).values.values())


def exact(loss: str, C: float) -> Callable[[Part], np.ndarray]:
    def train(part: Part) -> np.ndarray:
        (outcome,) = StructuredSVMTrainer(loss, StructuredSettings(C=(C,), bound="hinge")).train(
            part.training_set(), Watch()
        )
        return outcome.w

    return train


def sampled(tau: str, rate: float, l2: float) -> Callable[[Part], np.ndarray]:
    def train(part: Part) -> np.ndarray:
        plan = WarpTrainer("warp", WarpSettings(tau=tau, learning_rate=rate, l2=l2))
        (outcome,) = plan.train(part.training_set(), Watch())
        return outcome.w

    return train


def compare_ranking(arguments: argparse.Namespace) -> None:
    def read(path: str, **more) -> Part:
        data = read_svmlight(path, **more)
        return Part(data.X, data.positives(None, arguments.relevant_from), data.groups)

    whole = read(arguments.train)
    if arguments.test is None:
        whole, test = whole.split(0)
    else:
        test = read(arguments.test, n_features=whole.X.shape[1], ignore_unknown=True)
    fit, valid = whole.split(1)
    methods: dict[str, dict[str, Callable[[Part], np.ndarray]]] = {
        f"exact {loss}": {f"C={C:g}": exact(loss, C) for C in (1.0, 10.0, 100.0, 1000.0, 10000.0)} for loss in EXACT
    }
    methods |= {
        f"WARP {tau}": {f"rate={rate:g} l2={l2:g}": sampled(tau, rate, l2) for rate, l2 in product(RATES, (0.0, 1e-4))}
        for tau in TAUS
    }
    print(f"{arguments.train}: {whole.relevant.size} rows to train on, {int(whole.relevant.sum())} relevant; test on")
    print(f"{test.relevant.size}, {int(test.relevant.sum())} relevant; {whole.X.shape[1]} features")
    print(f"{'':<16} {'chosen':<18} {' '.join(f'{name:>8}' for name in METRICS)} {'seconds':>9} {'with choice':>12}")
    for name, settings in methods.items():
        began = time.process_time()
        best = max(settings, key=lambda choice: valid.measure(settings[choice](fit), ["AP"])[0])
        started = time.process_time()
        w = settings[best](whole)
        ended = time.process_time()
        values = " ".join(f"{value:>8.4f}" for value in test.measure(w, METRICS))
        print(f"{name:<16} {best:<18} {values} {ended - started:>9.2f} {ended - began:>12.2f}", flush=True)


Scores = Callable[[sp.csr_array], np.ndarray]


def ease(weight: float) -> Callable[[sp.csr_array], Scores]:
    """Items predicted from items by ridge regression in closed form, none from itself (Steck 2019)."""

    def train(likes: sp.csr_array) -> Scores:
        inverse = np.linalg.inv((likes.T @ likes).toarray().astype(np.float64) + weight * np.eye(likes.shape[1]))
        B = -inverse / np.diag(inverse)
        np.fill_diagonal(B, 0.0)
        return lambda rows: np.where(rows.toarray() > 0, -np.inf, rows @ B)

    return train


def warp_items(tau: str, rate: float, factors: int) -> Callable[[sp.csr_array], Scores]:
    def train(likes: sp.csr_array) -> Scores:
        plan = WarpTrainer("warp", WarpSettings(rows_as_users=True, tau=tau, learning_rate=rate))
        return train_items(likes, factors, plan.settings, Watch(), show=plan.show).factors.score

    return train


def of_implicit(kind: str, factors: int, **settings: float) -> Callable[[sp.csr_array], Scores]:
    """A model of the package; it has factors of users, so the rows it scores are those it was trained on, in order."""

    def train(likes: sp.csr_array) -> Scores:
        from implicit.cpu.als import AlternatingLeastSquares
        from implicit.cpu.bpr import BayesianPersonalizedRanking

        made = {"ALS": AlternatingLeastSquares, "BPR": BayesianPersonalizedRanking}[kind]
        model = made(factors=factors, random_state=0, num_threads=1, **settings)
        model.fit(sp.csr_matrix(likes), show_progress=False)
        at = 0

        def score(rows: sp.csr_array) -> np.ndarray:
            nonlocal at
            users = model.user_factors[at : at + rows.shape[0]]
            at += rows.shape[0]
            return np.where(rows.toarray() > 0, -np.inf, users @ model.item_factors.T)

        return score

    return train


def of_lightfm(factors: int, rate: float) -> Callable[[sp.csr_array], Scores]:
    """Its WARP, thirty epochs, on the items that a user has; it has factors of users, as ``of_implicit``."""

    def train(likes: sp.csr_array) -> Scores:
        from lightfm import LightFM

        model = LightFM(no_components=factors, loss="warp", learning_rate=rate, random_state=0)
        model.fit(likes.tocoo(), epochs=30, num_threads=1)
        at = 0

        def score(rows: sp.csr_array) -> np.ndarray:
            nonlocal at
            _, users = model.get_user_representations()
            of_items, items = model.get_item_representations()
            part = slice(at, at + rows.shape[0])
            at += rows.shape[0]
            return np.where(rows.toarray() > 0, -np.inf, users[part] @ items.T + of_items)

        return score

    return train


def compare_users(arguments: argparse.Namespace) -> None:
    X = read_svmlight(arguments.data).X
    if arguments.strongest is not None:
        dense = X.toarray()
        least = np.partition(dense, -arguments.strongest, axis=1)[:, -arguments.strongest][:, None]
        X = sp.csr_array(np.where((dense >= least) & (dense > 0), 1.0, 0.0))
    likes, hidden, left_out = hide(liked_items(X), 0.2, np.random.default_rng(0))
    usable = np.diff(likes.indptr) >= 2
    likes, hidden = likes[usable], hidden[usable]
    fit, valid, _ = hide(likes, 0.2, np.random.default_rng(1))
    factors = arguments.factors
    methods: dict[str, dict[str, Callable[[sp.csr_array], Scores]]] = {
        "popularity": {"": popularity},
        "EASE": {f"weight={weight:g}": ease(weight) for weight in (10.0, 30.0, 100.0, 300.0)},
    }
    methods |= {
        f"WARP {tau}": {f"rate={rate:g}": warp_items(tau, rate, factors) for rate in (0.05, 0.1, 0.2)} for tau in TAUS
    }
    if find_spec("implicit") is not None:
        methods["implicit ALS"] = {
            f"alpha={alpha:g} reg={reg:g}": of_implicit("ALS", factors, alpha=alpha, regularization=reg)
            for alpha, reg in product((1.0, 10.0, 40.0), (1.0, 30.0, 100.0, 300.0))
        }
        methods["implicit BPR"] = {
            f"rate={rate:g} reg={reg:g}": of_implicit(
                "BPR", factors, learning_rate=rate, regularization=reg, iterations=100
            )
            for rate, reg in product((0.001, 0.003, 0.01), (0.01, 0.1))
        }
    else:
        print("implicit is not installed: left out")
    if find_spec("lightfm") is not None:
        methods["LightFM"] = {f"rate={rate:g}": of_lightfm(factors, rate) for rate in (0.02, 0.05, 0.1)}
    else:
        print("lightfm is not installed: left out")
    names = ["P@1", "P@10", "nDCG@10", "AUC"]
    print(
        f"{arguments.data}: {likes.shape[0]} users ({left_out + int((~usable).sum())} of too few items left out), "
        f"{likes.shape[1]} items, {likes.nnz} likes to learn from, {hidden.nnz} hidden"
    )
    print(f"{'':<16} {'chosen':<18} {' '.join(f'{name:>8}' for name in names)} {'seconds':>9}")
    for name, settings in methods.items():
        best = next(iter(settings))
        if len(settings) > 1:
            best = max(
                settings, key=lambda choice: evaluate_lists(settings[choice](fit), fit, valid, ["P@10"]).values["P@10"]
            )
        began = time.process_time()
        score = settings[best](likes)
        seconds = time.process_time() - began
        values = evaluate_lists(score, likes, hidden, names).values
        figures = " ".join(f"{value:>8.4f}" for value in values.values())
        print(f"{name:<16} {best:<18} {figures} {seconds:>9.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    rank = commands.add_parser("rank")
    rank.add_argument("train")
    rank.add_argument("test", nargs="?")
    rank.add_argument("--relevant-from", type=float)
    rank.set_defaults(run=compare_ranking)
    users = commands.add_parser("users")
    users.add_argument("data")
    users.add_argument("--strongest", type=int)
    users.add_argument("--factors", type=int, default=64)
    users.set_defaults(run=compare_users)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
