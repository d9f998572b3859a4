"""The typed header: what is written is read, what is none is refused by the field's name."""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_files import replaced
from over import over

from apsvm import ModelError
from apsvm.models.columns import MISSING_RULES, ORDERS, Column, ColumnKind, Columns, DatePart
from apsvm.models.header import (
    POOLS,
    SCALES,
    Bounds,
    Calibration,
    Data,
    Epochs,
    Features,
    Gradient,
    Header,
    Labels,
    Member,
    SkippedClass,
    Threshold,
    Validation,
    parse_pool,
)
from apsvm.models.json import difference


def hints(kind: type) -> dict[str, typing.Any]:
    """The annotations of a dataclass's fields, by name."""
    known = typing.get_type_hints(kind, localns={"Json": object})
    return {one.name: known[one.name] for one in dataclasses.fields(kind)}


#: Control characters, lone surrogates (names of files that are no UTF-8) and anything else.
texts = st.text(st.characters(exclude_categories=()), max_size=8)
finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)


def values_of(hint: typing.Any) -> st.SearchStrategy[typing.Any]:
    """Any value of an annotation."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        (one,) = [argument for argument in arguments if argument is not type(None)]
        return st.none() | values_of(one)
    if origin is tuple:
        return st.lists(values_of(arguments[0]), max_size=2).map(tuple)
    if origin is Mapping:
        return st.dictionaries(texts, values_of(arguments[1]), max_size=2)
    if dataclasses.is_dataclass(hint):
        return headers_of(hint)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return st.sampled_from(hint)
    plain = {bool: st.booleans(), int: st.integers(), float: finite, str: texts, object: json_values}
    return plain[hint]


def headers_of(kind: type) -> st.SearchStrategy[typing.Any]:
    fields = {name: values_of(hint) for name, hint in hints(kind).items()}
    if kind is Features:  # which has names that mean something
        pools = st.lists(st.sampled_from(POOLS), min_size=1, unique=True).map(tuple)
        fields |= {"scale": st.sampled_from(SCALES), "pool": st.none() | pools}
        return st.fixed_dictionaries(fields).map(_named)
    if kind is Columns:
        fields["missing"] = st.sampled_from(MISSING_RULES)
    if kind is Column:
        dates = {"kind": st.just(ColumnKind.DATE), "order": st.sampled_from(ORDERS), "style": st.just("")}
        dates["parts"] = st.lists(st.sampled_from(DatePart), min_size=1, max_size=4, unique=True).map(tuple)
        others = {
            "kind": st.sampled_from([ColumnKind.NUMBER, ColumnKind.CATEGORY]),
            "order": st.just(""),
            "style": st.just(""),
        }
        return st.builds(kind, **{**fields, **dates}) | st.builds(kind, **{**fields, **others, "parts": st.just(())})
    if kind is Calibration:
        return st.builds(kind, **{**fields, **_PLATT}) | st.builds(kind, **{**fields, **_ISOTONIC})
    return st.builds(kind, **fields)


_PLATT = {
    "method": st.just("platt"),
    "slope": finite,
    "offset": finite,
    "lower": st.floats(0.0, 0.5),
    "upper": st.floats(0.5, 1.0),
    **dict.fromkeys(("scores", "probabilities"), st.just(())),
}
_ISOTONIC = {
    "method": st.just("isotonic"),
    "scores": st.tuples(finite, finite).map(sorted).map(tuple),
    "probabilities": st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)).map(sorted).map(tuple),
    "lower": st.just(0.0),
    "upper": st.just(1.0),
}


def _named(fields: dict[str, typing.Any]) -> Features:
    """Features of a table are called as its columns say."""
    columns = fields["columns"]
    return Features(**fields | ({} if columns is None else {"names": columns.feature_names()}))


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(headers_of(Header))
def test_round_trip(header):
    text = json.dumps(header.to_json(), allow_nan=False)
    back = Header.from_json(json.loads(text))
    assert back == header
    assert json.dumps(back.to_json()) == text  # 1 and 1.0 are equal in Python only


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(headers_of(Header), headers_of(Header))
def test_a_difference_and_what_it_differs_from_are_the_header(header, whole):
    found = json.loads(json.dumps(difference(header, whole)))
    assert Header.from_json(found, whole).to_json() == header.to_json()
    assert difference(header, header) == {}


#: Every part that a header may have.
FULL = Header(
    loss="ap",
    metric="AP",
    labels=Labels(
        positive=1.0, negative=(0.0,), relevant_from=2.0, relevant_above=0.0, cuts=(0.5,), names=("ham", "spam")
    ),
    features=Features(bias=1.0, names=("a\x00\n\x1b", "b")),
    seed=1,
    iterations=5,
    C=1.0,
    certificate=Bounds(primal=1.0, dual=0.5, gap=0.5, tolerance=1.0, hinge_objective=2.0),
    gradient=Gradient(value=1.0, gradient_norm=0.1, target=0.2, evaluations=9),
    epochs=Epochs(
        count=3,
        best=2,
        estimated_loss=0.1,
        validation=Validation(file="v", sha256="0", metric="AP", value=0.5),
    ),
    threshold=Threshold(value=0.5, rule="f1", held_out="5 folds", precision=0.5, recall=1.0, called=0.1),
    calibration=Calibration(method="isotonic", scores=(0.0, 1.0), probabilities=(0.25, 0.5), rows=9, positives=3),
    data=Data(positives=1, queries=1, queries_skipped=0, counts={"pairs": 3}),
    selection={"folds": 3},
    classes_skipped=(SkippedClass(label=3.0, reason="why"),),
    members=(Member(header={"loss": "auc"}, intercept=0.5, divisor=2.0),),
    estimator="APSVMRanker",
    versions={"apsvm": "0.1.0"},
)


def places(value: typing.Any, kind: type, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], typing.Any]]:
    """Where a header's JSON has a field, at any depth, and the field's annotation."""
    for name, hint in hints(kind).items():
        yield (*path, name), hint
        inner = value[name]
        parts = [argument for argument in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(argument)]
        if parts and isinstance(inner, dict):
            yield from places(inner, parts[0], (*path, name))
        elif parts and isinstance(inner, list):
            yield from places(inner[0], parts[0], (*path, name, 0))


PLACES = list(places(FULL.to_json(), Header))
OF_EVERY_TYPE = {
    "nothing": None, "true": True, "text": "x", "integer": 2, "huge integer": 10**400, "number": 0.5, "list": [object],
    "object": {"x": object},
}  # fmt: skip


def admitted(hint: typing.Any) -> set[str]:
    """The types of JSON values that an annotation admits."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return set().union(*({"nothing"} if one is type(None) else admitted(one) for one in arguments))
    integers = {"integer", "huge integer"}
    plain = {bool: {"true"}, int: integers, float: {"integer", "number"}, str: {"text"}}
    # Lists and objects of anything are refused for what is in them, but for mappings of any JSON values.
    return {"object"} if origin is Mapping and arguments[1] is object else plain.get(hint, set())


def shown(path: tuple[str, ...]) -> str:
    return re.sub(r"\.(\d+)(\.|$)", r"[\1]\2", ".".join(map(str, path)))


@over(("path", "hint"), PLACES)
def test_a_field_of_another_type(path, hint):
    refused = 0
    for kind, value in OF_EVERY_TYPE.items():
        content = replaced(FULL.to_json(), path, value)
        is_no_share = path[-1] in ("lower", "upper") and value != 0.5
        if kind in admitted(hint) and path[-1] not in ("scale", "method") and not is_no_share:
            Header.from_json(content)
            continue
        refused += 1
        with pytest.raises(ModelError, match=re.escape(f"'{shown(path)}")):
            Header.from_json(content)
    assert refused >= 4


def test_what_is_in_a_list_or_a_mapping_is_looked_at():
    content = FULL.to_json()
    for path, value, place in (
        (("labels", "negative"), [0.0, "x"], "labels.negative[1]"),
        (("labels", "cuts"), [1, float("inf")], "labels.cuts[1]"),
        (("features", "names"), ["a", 5], "features.names[1]"),
        (("data", "counts"), {"pairs": 1.5}, "data.counts.pairs"),
        (("versions",), {"numpy": 2}, "versions.numpy"),
        (("classes_skipped",), [{"label": 1, "reason": "x"}, 5], "classes_skipped[1]"),
        (("labels", "kind"), "colour", "labels.kind"),
    ):
        with pytest.raises(ModelError, match=re.escape(f"in '{place}', found ")):
            Header.from_json(replaced(content, path, value))


def test_an_unknown_field():
    content = FULL.to_json()
    parts = {path[:-1] for path, _ in PLACES}
    assert len(parts) == 12
    for part in parts:
        inner = content
        for step in part:
            inner = inner[step]
        with pytest.raises(ModelError, match=re.escape(f"'{shown((*part, 'colour'))}' is not known to this version")):
            Header.from_json(replaced(content, part, {**inner, "colour": 1}))


def test_a_field_of_former_files_is_ignored():
    content = FULL.to_json()
    spread = {"count": 1, "features": [0], "values": [1.0], "shares": [0.5]}
    assert Header.from_json({**content, "data": {**content["data"], "spread": spread}}) == FULL


@over("content", [None, [], "x", *({**FULL.to_json(), "schema": one} for one in (None, 0, 3, "1", 1.0, True, [1], {}))])
def test_no_header_of_this_version(content):
    with pytest.raises(ModelError):
        Header.from_json(content)


def test_what_is_no_json_cannot_be_written():
    with pytest.raises(TypeError, match="not JSON serializable"):
        Header(loss="ap", details={"where": Path("x")}).to_json()


DATE = Column(name="d", kind=ColumnKind.DATE, order="ymd", newest=9.0, parts=(DatePart.AGE,))
COLUMNS = Columns(features=(Column(name="a"), DATE))
TABLE = Features(names=COLUMNS.feature_names(), columns=COLUMNS)
PLATT = Calibration(method="platt", slope=1.0, offset=0.0)
ISOTONIC = Calibration(method="isotonic", scores=(2.0, 2.0), probabilities=(0.0, 1.0))


@over(
    ("good", "place", "value"),
    [
        *((TABLE, *wrong) for wrong in (
            ("scale", "loud"), ("pool", []), ("pool", ["mean", "mean"]), ("pool", ["median"]), ("names", ["b"]),
            ("columns.missing", "mean"),
        )),
        *((PLATT, *wrong) for wrong in (
            ("method", "magic"), ("offset", None), ("slope", None), ("lower", 1.5), ("upper", 1.5), ("lower", -0.5),
        )),
        *((ISOTONIC, *wrong) for wrong in (
            ("scores", [1.0]), ("scores", []), ("probabilities", [-0.1, 0.5]), ("probabilities", [0.1, 1.5]),
            ("scores", [1.0, 0.0]),
        )),
    ],
)  # fmt: skip
def test_what_no_training_makes(good, place, value):
    part = "features" if isinstance(good, Features) else "calibration"
    content, path = Header(loss="ap", **{part: good}).to_json(), [part, *place.split(".")]
    Header.from_json(content)
    with pytest.raises(ModelError, match=re.escape(f"'{'.'.join(path)}")):
        Header.from_json(replaced(content, path, value))


@over("change", [{"order": "yd"}, {"parts": []}, {"kind": "number"}, {"order": ""}, {"style": "dot"}])
def test_columns_that_there_cannot_be(change):
    """Beside one that there can be: each of them is looked at."""
    content = Header(loss="ap", features=TABLE).to_json()
    content["features"]["columns"]["features"][1] |= change
    with pytest.raises(ModelError):
        Header.from_json(content)


def test_labels_as_people_write_them():
    columns = Columns(features=(Column(name="a"),), label_words=("no", "yes"))
    of_words = Header(loss="ap", features=Features(names=("a",), columns=columns))
    of_numbers = Header(loss="ap")
    shown_labels = [of_words.shown_label(label) for label in (0.0, 1.0, 2.0, -1.0, 0.5)]
    assert shown_labels == ["no", "yes", "2", "-1", "0.5"]
    assert [of_numbers.shown_label(label) for label in (1.0, 0.5, 1e22)] == ["1", "0.5", "1e+22"]
    assert [of_words.label_number(label) for label in ("no", "yes", "perhaps")] == [0.0, 1.0, None]
    assert [of_numbers.label_number(label) for label in (2.0, "yes")] == [2.0, None]


def test_ways_to_pool():
    assert parse_pool("max,min,mean") == ("max", "min", "mean")
    assert parse_pool(" MIN, mean ") == ("min", "mean")
    for text in ("", "min,min", "min,median"):
        with pytest.raises(ValueError, match="expected some of min, mean, max"):
            parse_pool(text)
