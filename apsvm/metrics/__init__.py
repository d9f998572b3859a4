"""Ranking metrics for reports, one file each.

A metric's name is its argument, its column header and its key: ``AP``, ``AP(voc2007)``, ``P@10``, ``nDCG``,
``RBP(0.8)``, ``F0.5``. Case does not matter; ``parse_metric(name).name`` is the canonical form.

To add a metric, write ONE file with a subclass of `Metric` (or `MetricAtK`) and add ONE line to `METRICS`; the tests
are parametrised over `METRICS`. Importing this package loads no numpy: a metric's module is loaded when its name is
first parsed. `evaluate` and its result live in `apsvm.metrics.evaluate`, intervals and tests of significance in
`apsvm.metrics.significance`.
"""

import difflib
import re
from contextlib import suppress

from apsvm._support.registry import Registry, place_in
from apsvm.metrics.base import Metric, MetricAtK
from apsvm.metrics.errors import TIE_RULES, MetricError

__all__ = [
    "METRICS",
    "TIE_RULES",
    "Metric",
    "MetricAtK",
    "MetricError",
    "parse_metric",
    "trained_metric",
]

METRICS: Registry[Metric] = Registry(
    "metric",
    {
        "AP": "apsvm.metrics.average_precision:AveragePrecision",
        "AP(voc2007)": "apsvm.metrics.average_precision_voc2007:AveragePrecisionVOC2007",
        "AP(voc2010)": "apsvm.metrics.average_precision_voc2010:AveragePrecisionVOC2010",
        "AUC": "apsvm.metrics.roc_area:ROCArea",
        "pAUC(beta)": "apsvm.metrics.partial_roc_area:PartialROCArea",
        "WMW": "apsvm.metrics.wilcoxon:WilcoxonMannWhitney",
        "WMW(graph)": "apsvm.metrics.wilcoxon:WilcoxonMannWhitney",
        "P@k": "apsvm.metrics.precision_at_k:PrecisionAtK",
        "R@k": "apsvm.metrics.recall_at_k:RecallAtK",
        "Rprec": "apsvm.metrics.r_precision:RPrecision",
        "RR": "apsvm.metrics.reciprocal_rank:ReciprocalRank",
        "RBP(rho)": "apsvm.metrics.rank_biased_precision:RankBiasedPrecision",
        "bpref": "apsvm.metrics.bpref:BinaryPreference",
        "nDCG": "apsvm.metrics.ndcg:NDCG",
        "nDCG@k": "apsvm.metrics.ndcg:NDCGAtK",
        "nDCG(exp)": "apsvm.metrics.ndcg:ExponentialNDCG",
        "nDCG(exp)@k": "apsvm.metrics.ndcg:ExponentialNDCGAtK",
        "Precision": "apsvm.metrics.precision:Precision",
        "Recall": "apsvm.metrics.recall:Recall",
        "Accuracy": "apsvm.metrics.accuracy:Accuracy",
        "Fβ": "apsvm.metrics.f_measure:FMeasure",
    },
)
"""Canonical form of the name, a letter or a word standing for the parameter, → ``"module:Class"``."""

_ALIASES = {"prbep": "Rprec", "mrr": "RR"}  # names of losses
#: Names in trec_eval, scikit-learn and papers → names here.
_ELSEWHERE = {
    r"map|mean[ _]average[ _]precision|average[ _]precision(?:_score)?": "AP",
    r"roc|auroc|roc[ _]auc(?:_score)?": "AUC",
    r"ndcg_score": "nDCG",
    r"recip_rank|reciprocal[ _]rank": "RR",
    r"r[-_]?precision": "Rprec",
    r"acc|accuracy_score": "Accuracy",
    r"precision_score": "Precision",
    r"recall_score": "Recall",
    r"(?:precision|prec|p)[_@.](\d+)": "P@",
    r"recall[_@.](\d+)": "R@",
    r"ndcg(?:_cut)?[_.](\d+)": "nDCG@",
}


def parse_metric(name: str) -> Metric:
    """The metric that `name` stands for; case and surrounding blanks do not matter.

    Raises `MetricError` for an unknown name or a bad parameter; the message lists the known names and the nearest.
    """
    if not isinstance(name, str):
        raise MetricError(f"expected a metric's name, found {name!r}; known: {', '.join(METRICS)}")
    lowered = name.strip().lower()
    if lowered in _ALIASES:
        return METRICS[_ALIASES[lowered]]()
    forms = {form.lower(): form for form in METRICS}
    if lowered in forms and not _has_parameter(forms[lowered]):
        return METRICS[forms[lowered]]()
    for form in METRICS:
        parameter = _parameter(form, lowered)
        if parameter is not None and _has_parameter(form):
            try:
                metric = METRICS[form].from_text(parameter)
            except MetricError as error:
                raise MetricError(f"bad parameter in metric {name!r}: {error}; known: {', '.join(METRICS)}") from None
            if lowered not in forms:
                return metric
    if lowered in forms:
        raise MetricError(f"metric {name!r} is a form: write a value in place of its letter or word, as in P@10")
    for pattern, canonical in _ELSEWHERE.items():
        match = re.fullmatch(pattern, lowered)
        if match is not None:
            return parse_metric(canonical + "".join(match.groups()))
    raise MetricError(_unknown(name, lowered))


def trained_metric(name: str | None) -> Metric:
    """Metric whose shortfall is the loss ``name``; AP for None or an unregistered loss of a user."""
    if name is not None:
        with suppress(MetricError):
            return parse_metric(name)
    return METRICS["AP"]()


def _has_parameter(form: str) -> bool:
    """True if a form's last word is a parameter; False for ``AP(voc2007)``."""
    return place_in(form) is not None and METRICS[form].takes_parameter()


def _parameter(form: str, lowered: str) -> str | None:
    """Text of the parameter in a lower-case name of the form ``form``; None if the name has another form."""
    place = place_in(form)
    if place is None:
        return None
    # A word is followed by a number: "ap" is not "A" with parameter "p".
    before, after = place
    text = "(.*)" if before.endswith(("@", ":", "(")) else "([-+0-9.].*)"
    match = re.fullmatch(re.escape(before.lower()) + text + re.escape(after), lowered, re.DOTALL)
    return None if match is None else match[1]


def _unknown(name: str, lowered: str) -> str:
    family, at, _ = lowered.partition("@")
    forms = {form.lower(): form for form in METRICS}
    nearest = [forms[near] for near in difflib.get_close_matches(family + at + "k" * bool(at), forms, n=3, cutoff=0.4)]
    hint = f"; nearest: {', '.join(nearest)}" if nearest else ""
    return f"unknown metric {name!r}{hint}; known: {', '.join(METRICS)}"
