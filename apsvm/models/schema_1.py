"""Headers of schema 1 (apsvm 0.1.0), rewritten as ``models.header.Header`` has them: that schema was a flat object."""

from __future__ import annotations

from collections.abc import Mapping

from apsvm._support.types import JsonDict, JsonObject
from apsvm.models.json import HeaderError, Json, is_finite_number

#: The settings of each family, by their names then and now.
_SETTINGS: dict[str, dict[str, str]] = {
    "structured-svm": {name: name for name in ("epsilon", "keep_easy", "solver", "bound")},
    "rank-ncg": {
        **{name: name for name in ("objective", "summation", "accuracy", "optimizer", "tolerance", "normalize")},
        "lambda": "regularisation",
    },
    "warp": {
        **{name: name for name in ("tau", "rank_estimator", "max_trials", "rule", "learning_rate", "l2", "preference")},
    },
    "direct-loss": {name: name for name in ("update", "perturbation", "learning_rate", "l2", "step_rows")},
}


_AS_ASKED = ("converged", "all epochs done", "validation stopped improving", "nothing violates")


def upgraded(old: JsonObject) -> JsonDict:
    """The fields of a header of schema 2 that say what ``old`` said.

    Raises
    ------
    HeaderError : a field that every header of schema 1 had is missing
    """
    for name in ("loss", "zero_based", "positive_label"):
        if name not in old:
            raise HeaderError(f"it lacks {name!r}")
    family = _family(old["loss"])
    settings = {new: old[name] for name, new in _SETTINGS[family].items() if old.get(name) is not None}
    data = dict(_part(old, "data"))
    new: JsonDict = {
        "family": family,
        "loss": old["loss"],
        "metric": _metric(old),
        "labels": _labels(old, family),
        "features": _features(old),
        "settings": settings,
        "data": _data(data),
        "details": {},
    }
    new |= {
        name: old[name]
        for name in ("seed", "state", "iterations", "C", "selection", "classes_skipped", "estimator", "versions")
        if old.get(name) is not None
    }
    if "state" in old:
        new["as_asked"] = old["state"] in _AS_ASKED
    if "oracle" in old:
        # Those of the stages, of which only the 0-1 loss's is none that can be asked for.
        used = "appx" if old.get("exact") is False else str(old["oracle"]).rpartition(" then ")[2]
        settings["oracle"] = "auto" if used == "zero-one" else used
        new["details"]["oracle"] = old["oracle"]
    if old.get("C") is not None:
        multiple = old.get("C_of_default")
        settings["C"] = old["C"] if multiple is None else f"{_number(multiple, 'C_of_default'):g}x"
    new |= _evidence(old)
    if family == "rank-ncg":
        _add_preferences(old, new)
    if family == "warp":
        _add_what_warp_said(old, new)
    return new


#: What a whole set of rankers says of its training, of what its classes happen to share: no evidence of its own.
_EVIDENCE = ("certificate", "hinge_objective", "result", "evaluations", "epochs", "best_epoch", "estimated_loss")


def of_a_set(whole: JsonObject) -> JsonDict:
    """The header of a set of rankers, its classes left out."""
    return {name: value for name, value in whole.items() if name not in (*_EVIDENCE, "validation", "iterations")}


def of_a_class(whole: JsonObject, beside: JsonObject) -> JsonDict:
    """The header of a class's ranker: what all of the set share, and what it has beside that."""
    shared = {name: value for name, value in whole.items() if name not in ("classes_skipped", "positive_label")}
    return _merged(shared, beside)


def _merged(shared: JsonObject, beside: JsonObject) -> JsonDict:
    merged = dict(shared)
    for key, value in beside.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merged(merged[key], value) if both else value
    return merged


def _family(loss: object) -> str:
    if not isinstance(loss, str):
        raise HeaderError(f"expected text in 'loss', found {loss!r}")
    if loss.startswith("direct("):
        return "direct-loss"
    return {"wmw": "rank-ncg", "warp": "warp"}.get(loss, "structured-svm")


def _part(old: JsonObject, name: str) -> JsonObject:
    part = old.get(name)
    if part is None:
        return {}
    if not isinstance(part, Mapping):
        raise HeaderError(f"expected an object in {name!r}, found {part!r}")
    return part


#: What the losses of 0.1.0 are the shortfall of, where the names differ by more than their case.
_METRICS = {
    "ap": "AP", "auc": "AUC", "mrr": "RR", "ndcg": "nDCG(exp)", "ndcg(linear)": "nDCG", "f1": "F1", "prbep": "Rprec",
}  # fmt: skip
_AT_K = {"ndcg": "nDCG(exp)", "p": "P", "set-p": "P", "set-r": "R"}


def _metric(old: JsonObject) -> str | None:
    """What schema 1 left to its readers to know."""
    loss = old["loss"].removeprefix("direct(").removesuffix(")" if old["loss"].startswith("direct(") else "")
    if loss in _METRICS:
        return _METRICS[loss]
    form, at, cutoff = loss.partition("@")
    if at and form in _AT_K:
        return f"{_AT_K[form]}@{cutoff}"
    if loss.startswith("rbp("):
        return f"RBP{loss[3:]}"
    if loss.startswith("f("):
        return f"F{loss[2:-1]}"
    if loss == "warp":
        tau = old.get("tau", "harmonic")
        if not isinstance(tau, str):
            raise HeaderError(f"expected text in 'tau', found {tau!r}")
        return "P@10" if "users" in _part(old, "data") else {"auc": "WMW", "harmonic": "AP"}.get(tau, tau.upper())
    if loss != "wmw":
        return None
    edges = _edges(old)
    if edges:
        return "WMW({})".format(",".join(f"{low:g}<{high:g}" for low, high in edges))
    name = _part(old, "graph").get("name")
    return f"WMW({name})" if name in ("adjacent", "bipartite") else "WMW"


def _labels(old: JsonObject, family: str) -> JsonDict:
    several = bool(old.get("multilabel", False))
    positive, relevant_from = old["positive_label"], old.get("relevant_from")
    labels: JsonDict = {"several": several}
    labels["negative"] = _part(old, "labels").get("negative", [])
    classes = old.get("classes")
    if family == "rank-ncg":
        cuts, names = _part(old, "classes").get("cuts"), _list(_part(old, "classes"), "labels")
        lowest = 1.0 if cuts is not None else names[0] if names else None
        return {"kind": "order", "cuts": cuts, "relevant_above": lowest}
    if "users" in _part(old, "data"):
        return {"kind": "none"}
    if old.get("preference"):
        return {"kind": "order", "relevant_from": relevant_from, "relevant_above": old.get("lowest_grade")}
    if positive is not None:
        if isinstance(classes, list) and len(classes) == 2:
            labels["negative"] = [classes[0]]
        return {**labels, "kind": "one-label", "positive": positive}
    if relevant_from is not None:
        return {"kind": "threshold", "relevant_from": relevant_from}
    loss = old["loss"].removeprefix("direct(")
    if loss.startswith("ndcg") and not loss.startswith("ndcg-"):
        return {"kind": "grades"}
    if isinstance(classes, list) and len(classes) == 2 and all(isinstance(name, str) for name in classes):
        labels["names"] = classes
    return {**labels, "kind": "binary", "positive": 1.0}


def _features(old: JsonObject) -> JsonDict:
    bias = old.get("bias", -1.0)
    if not isinstance(bias, int | float):
        raise HeaderError(f"expected a number in 'bias', found {bias!r}")
    return {
        "zero_based": old["zero_based"],
        "scale": old.get("scale", "none"),
        "bias": None if bias < 0 else bias,
        "names": old.get("feature_names"),
    }


def _data(old: JsonDict) -> JsonDict:
    names = ("file", "sha256", "rows", "positives", "queries", "queries_skipped")
    known = {name: old.pop(name) for name in names if name in old}
    return {**known, "counts": old}


def _evidence(old: JsonObject) -> JsonDict:
    bounds, result = _part(old, "certificate"), _part(old, "result")
    if bounds:
        more = {name: old[name] for name in ("bound", "exact", "hinge_objective") if old.get(name) is not None}
        return {"certificate": {**bounds, **more}}
    if result:
        return {"gradient": {**result, "evaluations": old.get("evaluations")}}
    if "epochs" in old:
        count = old["epochs"]
        return {
            "epochs": {
                "count": count,
                "best": old.get("best_epoch", count),
                "estimated_loss": old.get("estimated_loss"),
                "validation": old.get("validation"),
            }
        }
    return {}


def _add_preferences(old: JsonObject, new: JsonDict) -> None:
    """The graph and the classes of RankNCG."""
    graph, classes = _part(old, "graph"), _part(old, "classes")
    new["settings"]["graph"] = graph.get("name", "full")
    if classes.get("cuts") is not None:
        new["settings"]["classes"] = classes.get("count")
    new["details"] = {
        "edges": [list(edge) for edge in _edges(old)] or None,
        "n_classes": classes.get("count"),
        "classes": classes.get("labels"),
        "rows_of_classes": classes.get("rows"),
    }


def _add_what_warp_said(old: JsonObject, new: JsonDict) -> None:
    """Its threads, and that rows are users."""
    if "threads" in old:
        new["details"]["threads"] = old["threads"]
    if "users" in _part(old, "data"):
        new["settings"] |= {"rows_as_users": True, "factors": old.get("factors")}


def _edges(old: JsonObject) -> list[tuple[float, float]]:
    """The edges of RankNCG's graph, where the header lists them."""
    edges = _list(_part(old, "graph"), "edges")
    pairs = [edge for edge in edges if isinstance(edge, list) and len(edge) == 2]
    if len(pairs) < len(edges):
        raise HeaderError(f"expected pairs of labels in 'graph.edges', found {edges!r}")
    return [(_number(low, "graph.edges"), _number(high, "graph.edges")) for low, high in pairs]


def _list(part: JsonObject, name: str) -> list[Json]:
    """The list of this name; an empty one where there is none."""
    values = part.get(name)
    if values is not None and not isinstance(values, list):
        raise HeaderError(f"expected a list in {name!r}, found {values!r}")
    return values or []


def _number(value: object, name: str) -> float:
    if not is_finite_number(value):
        raise HeaderError(f"expected a number in {name!r}, found {value!r}")
    return float(value)  # it is one
