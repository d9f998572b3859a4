"""Meaning of labels, against a twin in plain Python; recalled labels equal those of training."""

from __future__ import annotations

import json
from io import BytesIO
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from over import over

from apsvm.data import DataError, read_data, read_svmlight
from apsvm.data.labels import (
    MOST_GRADE,
    MOST_LISTED,
    LabelOptions,
    Takes,
    again,
    decide,
    judge,
    of_numbers,
    of_relevance,
    of_two,
    ordered,
    recall,
    threshold,
)
from apsvm.models.header import Header, LabelKind, Labels

#: Labels of each kind, row by row; of several labels a row, as text.
KINDS = {
    "plus and minus": [1, -1, -1, 1, -1],
    "one and zero": [0, 1, 0, 1, 1],
    "plus alone": [1, 1, 1],
    "minus alone": [-1, -1],
    "zeros": [0, 0, 0],
    "plus, zero and minus": [1, 0, -1, 1],
    "grades": [0, 3, 1, 2, 0, 1],
    "grades above zero": [1, 2, 3, 2],
    "grades below zero": [-2, -1, -2],
    "grades around zero": [-2, 0, 3, 1, -1],
    "two grades": [0, 2, 2, 0],
    "real": [0.5, -1.25, 0.5, 7.0, 0.25],
    "classes": [1, 2, 3, 4, 2, 5],
    "several": ["1,4", "", "4", "2,1", "5"],
}
OPTIONS = {
    "nothing": LabelOptions(),
    "positive 1": LabelOptions(positive_label=1.0),
    "positive 2": LabelOptions(positive_label=2.0),
    "from 0": LabelOptions(relevant_from=0.0),
    "from 1": LabelOptions(relevant_from=1.0),
    "from 2": LabelOptions(relevant_from=2.0),
}


def rows(labels):
    several = any(isinstance(label, str) for label in labels)
    text = "".join(f"{label} 1:{row}\n" for row, label in enumerate(labels, 1))
    return read_svmlight(BytesIO(text.encode()), multilabel=several)


def sets_of(labels) -> list[set[float]]:
    return [{float(word) for word in str(label).split(",") if word} for label in labels]


REFUSED = "refused"


def twin_of_two_classes(labels, options):
    """Kind, relevant rows and grades, by the rules as they are written down."""
    sets = sets_of(labels)
    several = any(isinstance(label, str) for label in labels)
    if options.relevant_from is not None:
        kind, relevant = LabelKind.THRESHOLD, [max(have, default=0.0) >= options.relevant_from for have in sets]
        known = not several
    elif options.positive_label is not None:
        kind, relevant = LabelKind.ONE_LABEL, [options.positive_label in have for have in sets]
        known = True
    else:
        kind, relevant = LabelKind.BINARY, [1.0 in have for have in sets]
        known = not several and (set().union(*sets) <= {1.0, -1.0} or set().union(*sets) <= {1.0, 0.0})
    return (kind, relevant, None) if known and len(set(relevant)) == 2 else REFUSED


def twin(labels, takes, options):
    several = any(isinstance(label, str) for label in labels)
    if takes is Takes.NOTHING:
        return LabelKind.NONE, [False] * len(labels), None
    if takes is Takes.CLASSES:
        return LabelKind.CLASSES, [False] * len(labels), None
    if takes is Takes.ORDER and not several:
        lowest = options.relevant_from
        return LabelKind.ORDER, [x > min(labels) if lowest is None else x >= lowest for x in labels], labels
    two = set() if several else set(labels)
    if takes is Takes.GRADES and options == LabelOptions() and not (two <= {1, -1} or two <= {1, 0}) and max(two) > 0:
        return LabelKind.GRADES, [x > 0 for x in labels], [max(x, 0) for x in labels]
    return twin_of_two_classes(labels, options)


def plain(target):
    assert target.relevant.dtype == np.bool_
    return target.labels.kind, target.relevant.tolist(), None if target.grades is None else target.grades.tolist()


def outcome_of(call, *arguments, **more):
    """The target in plain types, or REFUSED."""
    try:
        return plain(call(*arguments, **more))
    except DataError:
        return REFUSED


@over("kind", KINDS)
def test_what_a_trainer_takes_labels_for(kind):
    dataset = rows(KINDS[kind])
    for takes, options in product(Takes, OPTIONS.values()):
        assert outcome_of(decide, dataset, takes, options) == twin(KINDS[kind], takes, options), (takes, options)


def test_the_twin_tells_kinds_apart():
    found = [twin(KINDS[kind], takes, options) for kind in KINDS for takes in Takes for options in OPTIONS.values()]
    assert {one[0] for one in found} == {*LabelKind, REFUSED[0]}
    assert 50 < found.count(REFUSED) < len(found) / 2


def as_saved(labels: Labels) -> Labels:
    """As a model's file gives them back."""
    return Header.from_json(json.loads(json.dumps(Header(loss="ap", labels=labels).to_json()))).labels


def targets_of(kind):
    """Every target that training may make of the labels of a kind."""
    for takes, options in product(Takes, OPTIONS.values()):
        if twin(KINDS[kind], takes, options) != REFUSED:
            yield decide(rows(KINDS[kind]), takes, options)


@over("kind", KINDS)
def test_the_training_rows_are_recalled_as_they_were(kind):
    for target in targets_of(kind):
        check_recalled(rows(KINDS[kind]), target)


def check_recalled(dataset, target):
    recalled = recall(dataset, as_saved(target.labels))
    assert plain(recalled) == plain(target)
    assert recalled.labels == target.labels
    assert recalled.lowest_relevant == target.lowest_relevant
    np.testing.assert_array_equal(recalled.judgements, target.judgements)
    if target.classes is not None:
        assert recalled.classes.labels == target.classes.labels


numbers = st.sampled_from([-1.0, 0.0, 1.0, 1.5, 2.0, 3.0])


@pytest.mark.slow
@given(st.lists(numbers, min_size=2, max_size=8), st.data())
def test_a_row_means_to_a_judge_what_it_meant_in_training(labels, data):
    """Other rows, of labels that the training rows had: the relevant ones are those that were."""
    takes = data.draw(st.sampled_from([Takes.TWO_CLASSES, Takes.GRADES, Takes.ORDER]))
    options = data.draw(st.sampled_from(list(OPTIONS.values())))
    assume(twin(labels, takes, options) != REFUSED)
    target = decide(rows(labels), takes, options)
    kept = data.draw(st.lists(st.sampled_from(range(len(labels))), min_size=2, max_size=8))
    assume(len({bool(target.relevant[row]) for row in kept}) == 2)
    others = recall(rows([labels[row] for row in kept]), as_saved(target.labels))
    np.testing.assert_array_equal(others.relevant, target.relevant[kept])
    if target.grades is not None and others.grades is not None:
        np.testing.assert_array_equal(others.grades, target.grades[kept])


@over("kind", KINDS)
def test_what_metrics_take_labels_for_by_a_model(kind):
    """As the model's training did; what is said now goes before it."""
    dataset = rows(KINDS[kind])
    for target in targets_of(kind):
        if target.labels.kind not in (LabelKind.NONE, LabelKind.CLASSES, LabelKind.BINARY):
            assert plain(judge(dataset, LabelOptions(), target.labels)) == plain(target)
        for said in OPTIONS.values():
            if said != LabelOptions():
                assert outcome_of(judge, dataset, said, target.labels) == outcome_of(judge, dataset, said)


def test_the_labels_of_a_header_say_what_was_chosen():
    labels = decide(rows(KINDS["classes"]), Takes.TWO_CLASSES, OPTIONS["positive 2"]).labels
    assert labels == Labels(kind=LabelKind.ONE_LABEL, positive=2.0, negative=(1.0, 3.0, 4.0, 5.0))
    labels = decide(rows(KINDS["several"]), Takes.TWO_CLASSES, OPTIONS["positive 1"]).labels
    assert labels == Labels(kind=LabelKind.ONE_LABEL, positive=1.0, negative=(4.0, 5.0), several=True)
    labels = decide(rows(KINDS["grades"]), Takes.ORDER).labels
    assert labels == Labels(kind=LabelKind.ORDER, relevant_above=0.0)
    labels = decide(rows(KINDS["grades"]), Takes.ORDER, OPTIONS["from 2"]).labels
    assert labels == Labels(kind=LabelKind.ORDER, relevant_from=2.0)
    labels = decide(rows(KINDS["plus and minus"]), Takes.GRADES).labels
    assert labels == Labels(kind=LabelKind.BINARY, positive=1.0, negative=(-1.0,))
    many = decide(rows([*range(MOST_LISTED + 50), 0]), Takes.TWO_CLASSES, OPTIONS["positive 1"]).labels
    assert many.negative == (0.0, *np.arange(2.0, MOST_LISTED + 1))


def test_cuts_are_cut_again():
    """Real targets in classes: other rows are cut where the training rows were."""
    labels = Labels(kind=LabelKind.ORDER, relevant_above=1.0, cuts=(0.0, 1.0))
    target = recall(rows([-5, 0, 0.5, 1, 9]), labels)
    assert target.grades.tolist() == [1, 2, 2, 3, 3]
    assert target.relevant.tolist() == [False, True, True, True, True]
    assert target.labels == labels
    assert ordered(np.array([-5.0, 9.0]), cuts=np.array([0.0, 1.0])).labels == labels


@over(
    "classes, labels",
    [
        ([0, 1], Labels(kind=LabelKind.BINARY, positive=1.0, negative=(0.0,))),
        ([-1.0, 1.0], Labels(kind=LabelKind.BINARY, positive=1.0, negative=(-1.0,))),
        ([False, True], Labels(kind=LabelKind.BINARY, positive=1.0, negative=(0.0,))),
        ([1, 2], Labels(kind=LabelKind.ONE_LABEL, positive=2.0, negative=(1.0,))),
        ([0.5, 1.0], Labels(kind=LabelKind.ONE_LABEL, positive=1.0, negative=(0.5,))),
        (["ham", "spam"], Labels(kind=LabelKind.BINARY, names=("ham", "spam"))),
    ],
)
def test_values_of_two_classes(classes, labels):
    classes = np.array(classes)
    target = of_two(classes[[1, 0, 1]], classes)
    assert plain(target) == (labels.kind, [True, False, True], None)
    assert target.labels == labels
    if labels.positive is not None:
        assert plain(again(classes[[0, 1]].astype(float), labels))[1] == [False, True]


@over("kind", [kind for kind in KINDS if kind != "several"])
def test_numbers_mean_again_what_they_meant(kind):
    grades = np.array(KINDS[kind], dtype=np.float64)
    for takes, relevant_from in product((Takes.TWO_CLASSES, Takes.GRADES, Takes.ORDER), (None, 1.0, 2.0)):
        target = of_numbers(grades, takes, relevant_from=relevant_from)
        if takes is not Takes.GRADES or relevant_from is not None:
            lowest = min(grades) if takes is Takes.ORDER else 0.0
            expected = grades > lowest if relevant_from is None else grades >= relevant_from
            assert target.relevant.tolist() == expected.tolist()
            assert target.labels.relevant_from == relevant_from
        recalled = again(grades, target.labels)
        assert plain(recalled) == plain(target)
        assert recalled.labels == target.labels
    above = threshold(grades, relevant_above=1.0)
    assert plain(again(grades, above.labels)) == (LabelKind.THRESHOLD, (grades > 1.0).tolist(), None)
    assert of_relevance(above.relevant).relevant is above.relevant
    assert of_relevance(above.relevant).labels == Labels(kind=LabelKind.BINARY, positive=1.0)


@over("labels", [
    Labels(kind=LabelKind.ONE_LABEL, positive=2.0),
    Labels(kind=LabelKind.THRESHOLD, relevant_above=0.0),
    Labels(kind=LabelKind.THRESHOLD, relevant_from=1.0),
    Labels(kind=LabelKind.BINARY, positive=1.0),
])  # fmt: skip
def test_rows_that_are_all_relevant_to_a_model(labels):
    with pytest.raises(DataError):
        recall(rows([2, 2]), labels)


@over(
    "words, positive, names",
    [
        (["ham", "spam"], "spam", ("ham", "spam")),
        (["ham", "spam"], "ham", ("spam", "ham")),
        (["eggs", "ham", "spam"], "ham", ("not ham", "ham")),
        (["no", "yes"], None, ("no", "yes")),
    ],
)
def test_words_of_tables(words, positive, names, tmp_path):
    (tmp_path / "rows.csv").write_text("a,label\n" + "".join(f"{row},{word}\n" for row, word in enumerate(words)))
    dataset = read_data(tmp_path / "rows.csv")
    target = decide(dataset, Takes.TWO_CLASSES, LabelOptions(positive_label=positive))
    assert target.labels.names == names
    assert target.relevant.tolist() == [word == names[1] for word in words]
    assert target.labels.kind is (LabelKind.BINARY if positive is None else LabelKind.ONE_LABEL)
    check_recalled(dataset, target)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0, 1, 0, 1, 1], [0, 1, 0, 1, 1]),
        ([0, 3, 1, 2], [0, 7, 1, 3]),
        ([0, 1, MOST_GRADE], [0, 1, 2**MOST_GRADE - 1]),
        ([0, 1, MOST_GRADE + 1], [0, 1, MOST_GRADE + 1]),
        ([0.5, -1.25, 0.5, 7.0, 0.25], [0.5, 0, 0.5, 7.0, 0.25]),
        ([0, 2, 2, 0], [0, 1, 1, 0]),
    ],
)
def test_what_a_regression_fits(labels, expected):
    assert decide(rows(labels), Takes.GRADES).regressands().tolist() == [expected]
