"""What is reported: ranking metrics, one file a metric.

A metric's name is at once its argument, its column header and its key: ``AP``, ``AP(voc2007)``, ``P@10``, ``nDCG``.
Names are read without regard to case and written in one canonical form, so that ``parse_metric(name).name`` is
stable.

To add a metric, write ONE file with a subclass of `Metric` (or `MetricAtK`) and add ONE line to `METRICS`; the tests
are parametrised over `METRICS`. Importing this package loads no numpy: a metric's module is loaded when its name is
first parsed. `evaluate` and its result live in `apsvm.metrics.evaluate`.
"""

import difflib
import importlib

from apsvm.metrics.base import TIE_RULES, Metric, MetricAtK, MetricError

__all__ = ["METRICS", "TIE_RULES", "Metric", "MetricAtK", "MetricError", "known_metrics", "parse_metric"]

METRICS: dict[str, str] = {
    "ap": "apsvm.metrics.average_precision:AveragePrecision",
    "ap(voc2007)": "apsvm.metrics.average_precision_voc2007:AveragePrecisionVOC2007",
    "ap(voc2010)": "apsvm.metrics.average_precision_voc2010:AveragePrecisionVOC2010",
    "auc": "apsvm.metrics.roc_area:ROCArea",
    "p@k": "apsvm.metrics.precision_at_k:PrecisionAtK",
    "ndcg": "apsvm.metrics.ndcg:NDCG",
    "ndcg@k": "apsvm.metrics.ndcg:NDCGAtK",
    "f1": "apsvm.metrics.f1:F1",
}
"""Lower-case form of the name (``@k`` stands for every cut-off) → ``"module:Class"``, resolved when it is asked for."""

_MAX_DIGITS = 18  # a cut-off must fit int64


def known_metrics() -> tuple[str, ...]:
    """The canonical forms in the registry's order, ``("AP", …, "nDCG@k", …)``. Loads every metric's module."""
    return tuple(_load(key).form for key in METRICS)


def parse_metric(name: str) -> Metric:
    """The metric that `name` stands for; case and surrounding blanks do not matter.

    Raises `MetricError` for an unknown name or a cut-off that is not an integer ≥ 1; the message lists the known
    names and the nearest.
    """
    if not isinstance(name, str):
        raise MetricError(f"expected a metric's name, found {name!r}; known: {', '.join(known_metrics())}")
    wanted = name.strip().lower()
    family, at, cutoff = wanted.partition("@")
    key = f"{family}@k" if at else wanted
    if key not in METRICS:
        raise MetricError(_unknown(name, key))
    metric_class = _load(key)
    if not issubclass(metric_class, MetricAtK):
        return metric_class()
    digits = cutoff.lstrip("0")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS):
        raise MetricError(
            f"bad parameter in metric {name!r}: {metric_class.form} needs an integer k ≥ 1 of at most {_MAX_DIGITS} "
            f"digits, as in {metric_class(10).name}, found {cutoff!r}; known: {', '.join(known_metrics())}"
        )
    return metric_class(int(digits))


def _load(key: str) -> type[Metric]:
    module, _, attribute = METRICS[key].partition(":")
    metric_class: type[Metric] = getattr(importlib.import_module(module), attribute)
    return metric_class


def _unknown(name: str, key: str) -> str:
    nearest = [_load(near).form for near in difflib.get_close_matches(key, METRICS, n=3, cutoff=0.4)]
    hint = f"; nearest: {', '.join(nearest)}" if nearest else ""
    return f"unknown metric {name!r}{hint}; known: {', '.join(known_metrics())}"
