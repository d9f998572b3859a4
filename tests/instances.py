"""The losses, metrics and oracles that the tests run over: of each registered form its instances, and not its class at
the default parameter alone.

What is registered is here without being named here: a form whose parameter is of a kind known below comes with several
values of it, any other with the default. So a newcomer's line in the registry is enough to hold it to what the tests
ask of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from apsvm.losses import LOSSES, make_loss
from apsvm.losses.base import Loss, LossOverLabellings, LossOverRankings, RankingLoss
from apsvm.metrics import METRICS, Metric, parse_metric
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


def texts(forms: Iterable[str], parameters: Parameters, default: Mapping[str, str]) -> list[str]:
    """The names to be made of the ``forms``; of a form whose parameter is not among ``parameters`` its ``default``."""
    names = []
    for form in forms:
        placeholder = next((known for known in parameters if form.endswith(known)), None)
        if placeholder is None:
            names.append(default[form])
        else:
            names += [form.removesuffix(placeholder) + parameter for parameter in parameters[placeholder]]
    return names


def loss_names() -> list[str]:
    """The losses' canonical names."""
    names = texts(LOSSES, LOSS_PARAMETERS, {form: LOSSES[form]().name for form in LOSSES})
    return list(dict.fromkeys(make_loss(name).name for name in names))


def metrics() -> list[Metric]:
    """Every metric."""
    return [parse_metric(name) for name in texts(METRICS, METRIC_PARAMETERS, {form: form for form in METRICS})]


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
