"""Names of options in messages: ``--oracle search`` on the command line, ``oracle='search'`` in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

#: Objectives of LightGBM, XGBoost, CatBoost and scikit-learn → the nearest losses.
OBJECTIVES = {
    **dict.fromkeys(("lambdarank", "rank_xendcg", "rank:ndcg", "yetirank"), "ndcg"),
    **dict.fromkeys(("rank:map", "map", "average_precision"), "ap"),
    **dict.fromkeys(("rank:pairwise", "pairlogit", "roc_auc"), "auc"),
    **dict.fromkeys(
        ("binary", "binary:logistic", "logistic", "logloss", "log_loss", "cross_entropy"),
        "ap or auc; wmw (RankNCG) has the logistic loss of pairs",
    ),
}

#: Setting → parameter, within an estimator; None on the command line.
_PARAMETERS: ContextVar[Mapping[str, str] | None] = ContextVar("parameters", default=None)


@contextmanager
def named_as_parameters(renamed: Mapping[str, str]) -> Iterator[None]:
    """Names options as parameters of a Python function within; ``renamed``: setting → parameter, where they differ."""
    token = _PARAMETERS.set(renamed)
    try:
        yield
    finally:
        _PARAMETERS.reset(token)


def option(name: str, value: object = None) -> str:
    """The setting ``name``, with a value or without, as the user writes it."""
    parameters = _PARAMETERS.get()
    if parameters is None:
        flag = f"--{name.replace('_', '-')}"
        return flag if value is None or value is True else f"{flag} {value}"
    parameter = parameters.get(name, name)
    return parameter if value is None else f"{parameter}={value!r}"


def advice(command: str, python: str = "") -> str:
    """Advice to the user: ``command`` on the command line, ``python`` within an estimator."""
    return command if _PARAMETERS.get() is None else python


def plain_name(name: str) -> str:
    """The setting ``name`` as a word of a sentence."""
    return (_PARAMETERS.get() or {}).get(name, name)
