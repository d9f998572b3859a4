"""Section 4.3 of the CVPR 2018 paper on other data: networks trained a layer at a time (LW-SVM) by the 0-1, the AP and
the NDCG loss, with the papers' oracles; a part of ``quicksort_2018.py``.

The paper's network has six convolutional layers and classifies CIFAR-10, which is not to be had here. Ours have one
hidden layer of sixteen rectified linear units, on features as they are. All trainings of a problem begin at one
network, which the log loss has trained. A quarter of the training rows says when passes end and which of the trainer's
three values of C is taken, as in ``apsvm train --layer-wise``; times are of all three.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from experiments import Calls, Problem, by_data, difference, means_by_class, number, table

from apsvm.losses import make_loss
from apsvm.metrics import parse_metric
from apsvm.models.net import Net
from apsvm.trainers.base import Watch
from apsvm.trainers.structured_svm.layer_wise import train_layer_wise
from apsvm.trainers.structured_svm.net_problem import NetProblem, log_loss_net
from apsvm.trainers.structured_svm.networks import MULTIPLES_TRIED, held_out_loss
from apsvm.trainers.structured_svm.settings import StructuredSettings

HIDDEN = (16,)
METHODS = {
    "0-1": ("zero-one", "auto"),
    "AP": ("ap", "greedy"),
    "AP_QS": ("ap", "qs"),
    "NDCG": ("ndcg", "greedy"),
    "NDCG_QS": ("ndcg", "qs"),
}
#: Hours of a whole training.
PAPER_HOURS = {"AP": 1.974, "AP_QS": 1.589, "NDCG": 2.217, "NDCG_QS": 1.632}
LOG_LOSS = "log loss"
#: What is reported of which training.
ACCURACIES = (
    ("AP", LOG_LOSS),
    ("AP", "0-1"),
    ("AP", "AP_QS"),
    ("nDCG", LOG_LOSS),
    ("nDCG", "0-1"),
    ("nDCG", "NDCG_QS"),
)
PAPER_ACCURACY = (None, 84.22, 85.28, None, 95.31, 96.14)


@dataclass(frozen=True)
class Networks:
    """Figures of a problem: metrics on the test rows by (metric, method); by method the seconds of training, those of
    the oracle, and its calls."""

    problem: Problem
    accuracy: Mapping[tuple[str, str], float]
    seconds: Mapping[str, float]
    oracle_seconds: Mapping[str, float]
    calls: Mapping[str, int]


def networks(problem: Problem) -> tuple[Any, ...]:
    """The record of a problem."""
    data, seed = problem.training, problem.split
    of_data = NetProblem.of(data, make_loss("ap"), StructuredSettings(seed=seed))
    start = log_loss_net(of_data.inputs, of_data.relevant, HIDDEN, seed)
    nets = {LOG_LOSS: start.behind(of_data.scaling)}
    seconds, oracle_seconds, calls = {}, {}, {}
    for name, (loss, oracle) in METHODS.items():
        log, began = Calls(), time.process_time()
        settings = StructuredSettings(oracle=oracle, seed=seed, C=MULTIPLES_TRIED)
        tried = list(train_layer_wise(data, make_loss(loss), settings, HIDDEN, Watch(log), start))
        seconds[name] = time.process_time() - began
        oracle_seconds[name] = sum(call["oracle_cpu_ns"] for call in log.records) / 1e9
        calls[name] = len(log.records)
        nets[name] = min(tried, key=held_out_loss).w
    accuracy = {(metric, name): _judged(problem, metric, nets[name]) for metric, name in ACCURACIES}
    return accuracy, seconds, oracle_seconds, calls


def _judged(problem: Problem, metric: str, net: Net) -> float:
    return parse_metric(metric)(net.scores(problem.test_rows), problem.test_relevant)


def accuracies_of_networks(results: Sequence[Networks]) -> str:
    heading = ["networks, mean over the classes, %", *(f"{metric}, {name}" for metric, name in ACCURACIES)]
    rows = [["CIFAR-10 (paper)", *("-" if value is None else f"{value:.2f}" for value in PAPER_ACCURACY)]]
    for data, of_it in by_data(results).items():
        means = (100 * np.mean([result.accuracy[key] for result in of_it]) for key in ACCURACIES)
        rows.append([data, *(f"{mean:.2f}" for mean in means)])
    return table(heading, rows)


def times_of_networks(results: Sequence[Networks]) -> str:
    rows = [["CIFAR-10 (paper), hours", *(number(PAPER_HOURS.get(name)) for name in METHODS)]]
    for data, of_it in by_data(results).items():
        for what, values in (("", "seconds"), (": in the oracle", "oracle_seconds"), (": calls", "calls")):
            means = (np.mean([getattr(result, values)[name] for result in of_it]) for name in METHODS)
            rows.append([f"{data}{what}", *map(number, means)])
    return table(["layer-wise training, seconds", *METHODS], rows)


def claims_of_networks(results: Sequence[Networks]) -> list[tuple[str, bool, str]]:
    """Claims of the paper on networks, each with its verdict and evidence."""

    def gain(metric: str, name: str) -> tuple[bool, str]:
        first, second = (
            means_by_class(results, lambda result, of=of: result.accuracy[metric, of]) for of in (name, "0-1")
        )
        shown = difference(first, second)
        return shown.is_shown and shown.mean > 0, f"test {metric} {shown}"

    def total(name: str) -> float:
        return sum(result.seconds[name] for result in results)

    ratios = {name: total(name) / total(f"{name}_QS") for name in ("AP", "NDCG")}
    return [
        ("networks: the AP loss gives a better AP than the 0-1 loss (there by 1.06 points)", *gain("AP", "AP_QS")),
        ("networks: the NDCG loss gives a better nDCG than the 0-1 loss (there by .83)", *gain("nDCG", "NDCG_QS")),
        (
            "networks: with QS the whole training takes less time than with greedy (there by 20 and 26 %)",
            min(ratios.values()) > 1.05,
            ", ".join(f"{name} {ratio:.2f} times" for name, ratio in ratios.items()),
        ),
    ]
