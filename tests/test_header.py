"""The typed header: what is written is read, what is none is refused by the field's name, and files of schema 1."""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apsvm import load_any_model
from apsvm.header import (
    POOLS,
    SCALES,
    SCHEMA,
    Bounds,
    Data,
    Epochs,
    Features,
    Gradient,
    Header,
    HeaderError,
    LabelKind,
    Labels,
    SkippedClass,
    Validation,
)
from apsvm.header_1 import upgraded
from apsvm.header_columns import MISSING_RULES, Column, Columns
from apsvm.losses import LOSSES
from apsvm.metrics import parse_metric
from apsvm.model import LinearRanker, RankerSet
from apsvm.trainers.families import TRAINERS

FOLDER = Path(__file__).with_name("models_0_1_0")


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
        return st.builds(kind, **fields).map(_named)
    if kind is Columns:
        fields["missing"] = st.sampled_from(MISSING_RULES)
    return st.builds(kind, **fields)


def _named(features: Features) -> Features:
    """Features of a table are called as its columns say."""
    return features if features.columns is None else replace(features, names=features.columns.feature_names())


@given(headers_of(Header))
def test_round_trip(header):
    text = json.dumps(header.to_json(), allow_nan=False)
    back = Header.from_json(json.loads(text))
    assert back == header
    assert json.dumps(back.to_json()) == text  # 1 and 1.0 are equal in Python only


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(headers_of(Header), headers_of(Header))
def test_a_difference_and_what_it_differs_from_are_the_header(header, whole):
    difference = json.loads(json.dumps(header.difference(whole)))
    assert Header.from_difference(difference, whole).to_json() == header.to_json()
    assert header.difference(header) == {}


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
    gradient=Gradient(value=1.0, gradient_norm=0.1, asked=0.2, evaluations=9),
    epochs=Epochs(
        count=3,
        best=2,
        estimated_loss=0.1,
        validation=Validation(file="v", sha256="0", metric="AP", value=0.5),
    ),
    data=Data(positives=1, queries=1, queries_skipped=0, counts={"pairs": 3}),
    selection={"folds": 3},
    classes_skipped=(SkippedClass(label=3.0, reason="why"),),
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


def replaced(content: typing.Any, path: tuple[str, ...], value: typing.Any) -> typing.Any:
    """A copy of JSON with another value in one place."""
    if not path:
        return value
    if isinstance(content, list):
        return [replaced(item, path[1:], value) if at == path[0] else item for at, item in enumerate(content)]
    return {**content, path[0]: replaced(content[path[0]], path[1:], value)}


def shown(path: tuple[str, ...]) -> str:
    return re.sub(r"\.(\d+)(\.|$)", r"[\1]\2", ".".join(map(str, path)))


def test_the_places_are_all_of_them():
    assert len(PLACES) == sum(len(dataclasses.fields(kind)) for kind in (
        Header, Labels, Features, Bounds, Gradient, Epochs, Validation, Data, SkippedClass
    ))  # fmt: skip
    assert Header.from_json(FULL.to_json()) == FULL


@pytest.mark.parametrize(("path", "hint"), PLACES, ids=lambda value: shown(value) if isinstance(value, tuple) else "")
def test_a_field_of_another_type(path, hint):
    refused = 0
    for kind, value in OF_EVERY_TYPE.items():
        content = replaced(FULL.to_json(), path, value)
        if kind in admitted(hint) and path[-1] != "scale":
            Header.from_json(content)
            continue
        refused += 1
        with pytest.raises(HeaderError, match=re.escape(f"'{shown(path)}")):
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
        with pytest.raises(HeaderError, match=re.escape(f"in '{place}', found ")):
            Header.from_json(replaced(content, path, value))


NEEDED = [
    "loss",
    *(f"certificate.{name}" for name in ("primal", "dual", "gap", "tolerance")),
    "gradient.value",
    "gradient.gradient_norm",
    *(f"epochs.{name}" for name in ("count", "best", "estimated_loss")),
    *(f"epochs.validation.{name}" for name in ("file", "sha256", "metric", "value")),
    "classes_skipped[0].label",
    "classes_skipped[0].reason",
]


@pytest.mark.parametrize("path", [path for path, _ in PLACES], ids=shown)
def test_a_missing_field(path):
    """It has its default, or is named."""
    content = FULL.to_json()
    inner = content
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]
    if shown(path) in NEEDED:
        with pytest.raises(HeaderError, match=re.escape(f"it lacks '{shown(path)}'")):
            Header.from_json(content)
    else:
        back = Header.from_json(content).to_json()
        for step in path[:-1]:
            back = back[step]
        owner = [kind for at, kind in PLACES if at == path[:-1]]
        assert not owner or path[-1] in back


def test_an_unknown_field():
    content = FULL.to_json()
    parts = {path[:-1] for path, _ in PLACES}
    assert len(parts) == 9
    for part in parts:
        inner = content
        for step in part:
            inner = inner[step]
        with pytest.raises(HeaderError, match=re.escape(f"'{shown((*part, 'colour'))}' is not known to this version")):
            Header.from_json(replaced(content, part, {**inner, "colour": 1}))


@pytest.mark.parametrize("schema", [None, 0, 3, -1, "2", 2.0, 1.0, True, [2], {}])
def test_an_unknown_schema(schema):
    with pytest.raises(
        HeaderError, match=re.escape(f"schema {schema!r} is not known to this version of apsvm (it knows")
    ):
        Header.from_json({**FULL.to_json(), "schema": schema})


@pytest.mark.parametrize("content", [None, [], "x", 5, [{"schema": SCHEMA, "loss": "ap"}]])
def test_no_object(content):
    with pytest.raises(HeaderError, match="not a JSON object"):
        Header.from_json(content)


def test_what_cannot_be_written():
    with pytest.raises(TypeError, match="expected a JSON value in a header"):
        Header(loss="ap", details={"where": Path("x")}).to_json()
    with pytest.raises(HeaderError, match=r"expected one of none, .* in 'features.scale', found 'loud'"):
        Header(loss="ap", features=Features(scale="loud"))
    for wrong in ((), ("mean", "mean"), ("median",)):
        with pytest.raises(HeaderError, match=r"expected some of min, mean, max in 'features.pool', found \["):
            Header(loss="ap", features=Features(pool=wrong))
    columns = Columns(features=(Column(name="a"),))
    with pytest.raises(HeaderError, match=r"expected the names that the columns' features have in 'features.names'"):
        Header(loss="ap", features=Features(names=("b",), columns=columns))
    with pytest.raises(HeaderError, match=r"expected one of median, .* in 'features.columns.missing', found 'mean'"):
        Header(loss="ap", features=Features(names=("a",), columns=replace(columns, missing="mean")))


# ------------------------------------------------------------------------------------- schema 1


def header_of(name: str) -> Header:
    return load_any_model(FOLDER / f"{name}.model").header


BINARY = Labels(positive=1.0, negative=(-1.0,))
UNLISTED = Labels(positive=1.0)
#: family, loss, metric, labels, evidence.
OF_THEN = {
    "ap": ("structured-svm", "ap", "AP", BINARY, 0.09658394995292241),
    "appx": ("structured-svm", "ap", "AP", BINARY, 0.0028578992439491913),
    "classifier": ("structured-svm", "ap", "AP", Labels(positive=1.0, names=("ham", "spam")), 0.0038194355242691103),
    "classifier_numbers": (
        "structured-svm", "zero-one", None, Labels(kind=LabelKind.ONE_LABEL, positive=5.0, negative=(2.0,)),
        0.04557173316626262,
    ),
    "cv": ("structured-svm", "ap", "AP", BINARY, 0.0007131701034627236),
    "direct_ap": ("direct-loss", "direct(ap)", "AP", UNLISTED, 0.16420454545454533),
    "direct_ndcg": (
        "direct-loss", "direct(ndcg)", "nDCG(exp)", Labels(kind=LabelKind.GRADES), 0.11020356174632943,
    ),
    "f1": ("structured-svm", "f1", "F1", BINARY, 0.04069874469852408),
    "interrupted": ("structured-svm", "ap", "AP", BINARY, 0.7162185815894913),
    "ndcg_grades": ("structured-svm", "ndcg", "nDCG(exp)", Labels(kind=LabelKind.GRADES), 0.003457713682904928),
    "ndcg_linear": ("structured-svm", "ndcg(linear)", "nDCG", Labels(kind=LabelKind.GRADES), 0.004617658086786713),
    "one_vs_rest": ("structured-svm", "ap", "AP", Labels(kind=LabelKind.CLASSES), None),
    "one_vs_rest_l2": ("structured-svm", "ap", "AP", Labels(kind=LabelKind.CLASSES), None),
    "positive_label": (
        "structured-svm", "ap", "AP", Labels(kind=LabelKind.ONE_LABEL, positive=3.0, negative=(1.0, 2.0, 4.0)),
        0.1356324452844433,
    ),
    "query_weights": ("structured-svm", "ndcg", "nDCG(exp)", Labels(kind=LabelKind.GRADES), 0.004465478839435932),
    "rank_ncg": (
        "rank-ncg", "wmw", "WMW", Labels(kind=LabelKind.ORDER, relevant_above=0.0), 3.046862917212089e-06,
    ),
    "rank_ncg_classes": (
        "rank-ncg", "wmw", "WMW",
        Labels(kind=LabelKind.ORDER, relevant_above=1.0, cuts=(-0.40666666666666684, 0.5633333333333332)),
        5.678344253476483e-06,
    ),
    "ranker": ("structured-svm", "ndcg", "nDCG(exp)", Labels(kind=LabelKind.GRADES), 0.003457713682904928),
    "ranker_relevant_from": (
        "structured-svm", "mrr", "RR", Labels(kind=LabelKind.THRESHOLD, relevant_from=2.0), 8.969210324805132e-05,
    ),
    "relevant_from": (
        "structured-svm", "ap", "AP", Labels(kind=LabelKind.THRESHOLD, relevant_from=2.0), 0.0035073171167756545,
    ),
    "scale_l2": ("structured-svm", "ap", "AP", BINARY, 0.0022550135683978567),
    "scale_maxabs": ("structured-svm", "ap", "AP", BINARY, 0.002173311065483574),
    "scale_standard": ("structured-svm", "ap", "AP", BINARY, 0.0019920534413093716),
    "tight": ("structured-svm", "ap", "AP", BINARY, 0.027853533090100413),
    "warp": ("warp", "warp", "AP", UNLISTED, 0.6578274691055495),
    "warp_preference": (
        "warp", "warp", "AP", Labels(kind=LabelKind.ORDER, relevant_from=2.0), 0.4135341843534463,
    ),
    "warp_ranker": ("warp", "warp", "AP", Labels(kind=LabelKind.ORDER, relevant_above=0.0), 0.4708389122501612),
    "warp_users": ("warp", "warp", "P@10", Labels(kind=LabelKind.NONE), 0.7888756683644048),
    "warp_validation": ("warp", "warp", "AP", UNLISTED, 0.5419758012770933),
    "wmw": ("rank-ncg", "wmw", "WMW", Labels(kind=LabelKind.ORDER, relevant_above=0.0), 3.046862917212089e-06),
    "wmw_classes": (
        "rank-ncg", "wmw", "WMW",
        Labels(kind=LabelKind.ORDER, relevant_above=1.0, cuts=(-0.40666666666666684, 0.5633333333333332)),
        5.678344253476483e-06,
    ),
    "wmw_graph": (
        "rank-ncg", "wmw", "WMW(1<2,1<3,2<3,3<4)", Labels(kind=LabelKind.ORDER, relevant_above=1.0),
        2.1457879733201117e-06,
    ),
    "zero_based": ("structured-svm", "ap", "AP", BINARY, 0.003819435524268666),
    "zero_one": ("structured-svm", "zero-one", None, BINARY, 0.04557173316626262),
}  # fmt: skip


def test_all_of_then_are_here():
    assert sorted(OF_THEN) == sorted(path.stem for path in FOLDER.glob("*.model"))


@pytest.mark.parametrize("name", sorted(OF_THEN))
def test_what_a_header_of_then_says(name):
    header = header_of(name)
    family, loss, metric, labels, evidence = OF_THEN[name]
    assert (header.family, header.loss, header.metric, header.labels) == (family, loss, metric, labels)
    if metric is not None:
        parse_metric(metric)
    bounds, gradient, epochs = header.certificate, header.gradient, header.epochs
    found = [bounds and bounds.gap, gradient and gradient.gradient_norm, epochs and epochs.estimated_loss]
    assert [value for value in found if value is not None] == ([] if evidence is None else [evidence])
    assert header.as_asked == (name != "interrupted")
    # It is a header of now.
    assert Header.from_json(json.loads(json.dumps(header.to_json()))) == header
    # Its settings are settings of its trainer.
    settings = TRAINERS[header.family].Settings
    assert settings.from_json(header.settings).to_json().items() >= dict(header.settings).items()


def test_more_of_what_headers_of_then_say():
    assert header_of("zero_based").features == Features(zero_based=True)
    assert header_of("scale_l2").features.scale == "l2"
    assert header_of("classifier").features == Features(bias=1.0, names=tuple("abcde"))
    assert header_of("classifier").estimator == "APSVMClassifier"
    assert (header_of("ap").settings["C"], header_of("appx").settings["C"]) == ("1x", 5.0)
    assert header_of("cv").selection["folds"] == 3
    tight = header_of("tight")
    assert (tight.certificate.bound, tight.settings["bound"], tight.settings["oracle"]) == ("tight", "tight", "bucket")
    assert tight.certificate.hinge_objective == 11.745181588553185
    appx = header_of("appx")
    assert (appx.settings["oracle"], appx.settings["keep_easy"], appx.certificate.exact) == ("appx", 50.0, False)
    assert header_of("wmw").gradient.asked == 4.186170212765958e-06
    assert header_of("wmw").data.counts == {"pairs": 47}
    assert header_of("wmw").details["n_classes"] == 4
    assert header_of("wmw_graph").details["edges"] == [[1.0, 2.0], [1.0, 3.0], [2.0, 3.0], [3.0, 4.0]]
    chosen_by = header_of("warp_validation").epochs.validation
    assert (chosen_by.metric, chosen_by.value) == ("AP", 0.8357954545454547)
    users = header_of("warp_users")
    assert (users.settings["rows_as_users"], users.settings["factors"]) == (True, 3)
    assert users.data.counts == {"likes": 53, "users": 13, "users_skipped": 1}


@pytest.mark.parametrize("name", ["one_vs_rest", "one_vs_rest_l2"])
def test_each_class_of_then_has_a_header_of_its_own(name):
    model = load_any_model(FOLDER / f"{name}.model")
    assert isinstance(model, RankerSet)
    assert [header.labels.positive for header in model.headers] == [1, 2, 3, 4]
    for header in model.headers:
        assert header.labels.kind is LabelKind.ONE_LABEL
        assert sorted((header.labels.positive, *header.labels.negative)) == [1, 2, 3, 4]
        assert header.certificate is not None
        assert header.certificate.reached
        assert (header.data.file, header.data.rows) == ("classes.svm", 24)
        assert header.data.positives is not None
        assert header.iterations is not None
    assert len({header.certificate for header in model.headers}) == 4


@pytest.mark.parametrize("form", [*LOSSES, "ndcg(linear)", "set-p@3", "rbp(0.95)"])
def test_the_metric_of_then_is_the_losses_own(form):
    from apsvm.losses import make_loss

    loss = make_loss(LOSSES[form]().name if form in LOSSES else form)
    old = {"loss": loss.name, "zero_based": False, "positive_label": None}
    assert upgraded(old)["metric"] == loss.metric
    assert upgraded({**old, "loss": f"direct({loss.name})"})["metric"] == loss.metric


@pytest.mark.parametrize(
    "name", ["ap", "tight", "classifier", "direct_ap", "warp_validation", "warp_users", "wmw_graph"]
)
def test_a_field_of_then_of_another_type(name):
    """A header or a HeaderError, whatever stands there."""
    import numpy as np

    with np.load(FOLDER / f"{name}.model", allow_pickle=False) as archive:
        content = json.loads(archive["header"].tobytes())
    refused = 0
    paths = [(key,) for key in content]
    paths += [(key, inner) for key, value in content.items() if isinstance(value, dict) for inner in value]
    for path in paths:
        for value in (None, True, "x", -5, 10**400, 0.5, [], [None], ["x", 5], [[1]], [[1, "x"]], {}, {"x": 1}):
            changed = replaced(content, path, value)
            try:
                header = Header.from_json(changed)
            except HeaderError:
                refused += 1
            else:
                json.dumps(header.to_json(), allow_nan=False)
    assert refused > 100
    for needed in ("loss", "zero_based", "positive_label"):
        with pytest.raises(HeaderError, match=f"lacks '{needed}'"):
            Header.from_json({key: value for key, value in content.items() if key != needed})


def test_a_linear_ranker_keeps_a_header_with_control_characters(tmp_path):
    import numpy as np

    names = ("\x00", "\n\r\t", "\x1b[31m", "\u2028", "\udcff", '"\\')
    header = Header(loss="ap", features=Features(names=names), data=Data(file="a\nb\x00"))
    LinearRanker(np.ones(6), 0.0, header).save(tmp_path / "m")
    assert load_any_model(tmp_path / "m").header == header
