"""Headers of schema 1, as apsvm 0.1.0 wrote them, read as those of now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from model_files import replaced

from apsvm import load_any_model
from apsvm.losses import LOSSES
from apsvm.metrics import parse_metric
from apsvm.models.header import (
    Features,
    Header,
    HeaderError,
    LabelKind,
    Labels,
)
from apsvm.models.schema_1 import upgraded
from apsvm.models.sets import RankerSet
from apsvm.trainers import TRAINERS

FOLDER = Path(__file__).parents[1] / "models_0_1_0"


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
