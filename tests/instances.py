"""The losses, metrics and oracles that the tests run over: of each registered form its instances, and not its class at
the default parameter alone.

What is registered is here without being named here: a form comes with the values of its parameter that its class names
as ``examples``; one whose letter is among those below with several that any of that letter may have; any other with the
default alone. So a newcomer's line in the registry is enough to hold it to what the tests ask of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from over import over

from apsvm._support.registry import place_in
from apsvm.losses import LOSSES, make_loss
from apsvm.losses.base import Loss, LossOverLabellings, LossOverRankings, RankingLoss
from apsvm.metrics import METRICS, Metric, parse_metric
from apsvm.metrics.evaluate import parse_metrics, summarise
from apsvm.metrics.ranking_table import Judgements
from apsvm.oracles import ORACLES

Parameters = Mapping[str, Sequence[str]]

#: What stands for a parameter at the end of a form → texts in its place: the ends of the range, and between them.
LOSS_PARAMETERS: Parameters = {
    "@k": ("@1", "@3", "@100"),
    "(rho)": ("(0.05)", "(0.8)", "(0.99)"),
    "(gain)": ("(linear)", "(exponential)"),
    "(beta)": ("(0.5)", "(2)"),
}
METRIC_PARAMETERS: Parameters = {
    "@k": ("@1", "@4", "@100"),
    "(rho)": ("(0.05)", "(0.8)", "(0.99)"),
    "(graph)": ("(adjacent)", "(0<1)", "(0<1,2<1)"),
    "β": ("1", "0.5", "2"),
}


def loss_names() -> list[str]:
    """The losses' canonical names."""
    names = [name for form, kind in LOSSES.items() for name in _names(form, kind.examples, LOSS_PARAMETERS)]
    names = [LOSSES[name]().name if name in LOSSES else name for name in names]
    return list(dict.fromkeys(make_loss(name).name for name in names))


def metrics() -> list[Metric]:
    """Every metric."""
    names = [name for form, kind in METRICS.items() for name in _names(form, kind.examples, METRIC_PARAMETERS)]
    for name in names:
        if name in METRICS and METRICS[name].takes_parameter() and place_in(name) is not None:
            raise LookupError(
                f"{METRICS[name].__name__}.examples: name values of the parameter of {name} for the tests"
            )
    return [parse_metric(name) for name in names]


def _names(form: str, examples: Sequence[str], parameters: Parameters) -> list[str]:
    """The names to be made of a form; it itself where no parameter of it is known."""
    letter = next((known for known in parameters if form.endswith(known)), None)
    place = place_in(form)
    if examples and place is not None:
        return [form] * (form in LOSSES) + [example.join(place) for example in examples]
    return [form] if letter is None else [form.removesuffix(letter) + text for text in parameters[letter]]


def form_of(loss: str) -> str:
    """The registered form of a loss's name."""
    return LOSSES.spelled(loss).form


def _of_kind(kind: type[Loss]) -> list[str]:
    return [name for name in LOSS_NAMES if isinstance(make_loss(name), kind)]


LOSS_NAMES = loss_names()
#: Of the two-array family; all over rankings, those and others; over labellings.
TWO_ARRAY_LOSSES = _of_kind(RankingLoss)
RANKING_LOSSES = _of_kind(LossOverRankings)
LABELLING_LOSSES = _of_kind(LossOverLabellings)
METRIC_LIST = metrics()
METRIC_NAMES = [metric.name for metric in METRIC_LIST]
#: A loss and an exact oracle that serves it, but for the judge, which tries everything.
LOSSES_AND_ORACLES = [
    (loss, oracle)
    for loss in LOSS_NAMES
    for oracle in ORACLES
    if oracle != "brute-force" and ORACLES[oracle].exact and ORACLES[oracle]().refusal(make_loss(loss)) is None
]


def evaluated(metrics, scores, grades, groups=None, ties="block", *, relevant_from=None, threshold=0.0, **more):
    """``evaluate`` of rows that may be unranked or unjudged; a group without a value counts 0."""
    ids, codes = (None, None) if groups is None else np.unique(groups, return_inverse=True)
    more = {name: np.asarray(mask, dtype=bool) for name, mask in more.items()}
    rows = Judgements(np.asarray(grades), relevant_from, codes, ids, threshold=threshold, **more)
    table = rows.table(np.asarray(scores, dtype=float), ties)
    return summarise(parse_metrics(metrics), table, all_groups=groups is not None)


#: Runs a test for every metric.
each_metric = over("metric", METRIC_LIST, ids=lambda metric: metric.name)
