"""Names: one canonical form, read without regard to case; a mistake is answered with the known and the nearest."""

import os
import pickle
import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from command import in_process
from instances import each_metric
from over import over

from apsvm._support.registry import place_in
from apsvm.metrics import METRICS, Metric, MetricAtK, MetricError, parse_metric


@each_metric
@over("spell", [str, str.lower, str.upper, str.swapcase, lambda name: f"  {name}\t"])
def test_names_round_trip(metric, spell):
    parsed = parse_metric(spell(metric.name))
    assert parsed == metric
    assert parsed.name == metric.name
    assert hash(parsed) == hash(metric)
    assert isinstance(metric, METRICS[metric.form])
    assert pickle.loads(pickle.dumps(metric)) == metric


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("AP(voc2012)", "AP(voc2010)"),
        ("DCG", "nDCG"),
        ("ndgc@5", "nDCG@k"),
        ("RBP", "RBP(rho)"),
        ("WMW[0<1]", "WMW"),
        ("AP@3", "AP"),
    ],
)
def test_unknown_names_are_answered_with_the_nearest(name, nearest):
    with pytest.raises(MetricError, match="unknown metric") as caught:
        parse_metric(name)
    message = str(caught.value)
    assert repr(name) in message
    assert nearest in message.partition("nearest: ")[2].partition(";")[0].split(", ")
    assert message.endswith("known: " + ", ".join(METRICS))


@over("cutoff", ["", "0", "000", "-1", "+1", "1.5", "1e3", "k", "ten", " 5", "1_0", "²", "٣", "9" * 19, "9" * 9999])
@over("family", ["P", "R", "nDCG"])
def test_bad_cutoffs(family, cutoff):
    with pytest.raises(MetricError, match=rf"bad parameter in metric .*{family}@k needs an integer k ≥ 1.*known: AP, "):
        parse_metric(f"{family}@{cutoff}")


@pytest.mark.parametrize("k", [0, -3, 2.0, True, "5"])
def test_bad_cutoffs_given_directly(k):
    with pytest.raises(MetricError, match="integer k ≥ 1"):
        type(parse_metric("P@1"))(k)


def test_the_largest_cutoff_works():
    assert parse_metric("P@" + "9" * 18)([1.0], [True]) == pytest.approx(1e-18, abs=0.0)
    assert parse_metric("nDCG@" + "9" * 18)([1.0], [True]) == 1.0


@over(
    ("name", "message"),
    [
        ("RBP(0)", "0 < ρ < 1"), ("RBP(1)", "0 < ρ < 1"), ("RBP(nan)", "0 < ρ < 1"), ("RBP()", "needs a number"),
        ("RBP(1_0)", "needs a number"), ("F0", "0 < β < ∞"), ("F-1", "0 < β < ∞"), ("F1e999", "0 < β < ∞"),
        ("F1x", "needs a number"), ("WMW(half)", "one of full, adjacent, bipartite or edges"),
        ("WMW()", "one of full"), ("WMW(1<1)", "no grade can be preferred to itself"), ("WMW(1<)", "needs a number"),
        ("WMW(0<inf)", "finite grades"), ("WMW(0<1<2)", "needs a number"),
    ],
)  # fmt: skip
def test_bad_parameters(name, message):
    with pytest.raises(MetricError, match=rf"bad parameter in metric .*{re.escape(message)}.*known: AP, "):
        parse_metric(name)


class FirstRow(Metric):
    form = "First"

    def _compute(self, table):
        return table.hits_within(np.ones(table.n_rankings, dtype=np.int64))


def test_a_newcomer_needs_one_class_and_one_line(monkeypatch):
    monkeypatch.setitem(METRICS._places, "First", f"{__name__}:FirstRow")
    assert parse_metric("fiRst").name == "First"
    assert parse_metric("first")([3.0, 2.0, 1.0], [True, False, True]) == 1.0
    assert [*METRICS][-1] == "First"
    shown = " ".join(in_process(["eval", "--help-all"], env=dict(os.environ)).stdout.decode().split())
    assert "Accuracy, Fβ, First. --ties" in shown


@dataclass(frozen=True)
class Share(Metric):
    """A newcomer's, of one number, or of a word; its form has any letter or word in its place."""

    value: str
    form: ClassVar[str] = "Share(of)"

    @property
    def name(self):
        return self.value.join(place_in(self.form))

    @classmethod
    def from_text(cls, parameter):
        if parameter == "no":
            raise MetricError("not so")
        return cls(parameter)

    def _compute(self, table):
        return np.ones(table.n_rankings)


class HitsAtN(MetricAtK):
    form = "Hits@n"

    def _compute(self, table):
        return table.hits_within(np.full(table.n_rankings, self.k)) / self.k


def test_a_bad_parameter_of_a_newcomers(monkeypatch):
    monkeypatch.setitem(METRICS._places, "Share(of)", f"{__name__}:Share")
    with pytest.raises(MetricError, match=r"bad parameter in metric 'share\(no\)': not so; known: AP"):
        parse_metric("share(no)")
    with pytest.raises(MetricError, match=r"metric 'share\(of\)' is a form: write a value in place"):
        parse_metric("share(of)")
    monkeypatch.setitem(METRICS._places, "Hits@n", f"{__name__}:HitsAtN")
    assert parse_metric("hits@03").name == "Hits@3"
    with pytest.raises(MetricError, match="Hits@n needs an integer k"):
        parse_metric("hits@n")


@over(
    ("elsewhere", "here"),
    [
        ("MAP", "AP"), ("average_precision", "AP"), ("average_precision_score", "AP"), ("ndcg_cut_10", "nDCG@10"),
        ("ndcg_cut.5", "nDCG@5"), ("P_5", "P@5"), ("recall_100", "R@100"), ("recip_rank", "RR"), ("roc_auc", "AUC"),
        ("precision@10", "P@10"), ("R-Precision", "Rprec"),
    ],
)  # fmt: skip
def test_what_others_call_a_metric(elsewhere, here):
    assert parse_metric(elsewhere).name == here


@over(
    ("name", "canonical"),
    [
        ("p@010", "P@10"),
        ("NDCG@5", "nDCG@5"),
        ("ap(VOC2007)", "AP(voc2007)"),
        ("rbp(.50)", "RBP(0.5)"),
        ("f1.0", "F1"),
        ("F.5", "F0.5"),
        ("prbep", "Rprec"),
        ("MRR", "RR"),
        ("rprec", "Rprec"),
        ("ndcg(EXP)@05", "nDCG(exp)@5"),
        ("wmw(full)", "WMW"),
        ("WMW(Adjacent)", "WMW(adjacent)"),
        ("wmw(1<2,0<2,0<2.0,-1<.5)", "WMW(-1<0.5,0<2,1<2)"),
    ],
)
def test_canonical_names(name, canonical):
    assert parse_metric(name).name == canonical


@over("name", ["", "zzzzzzzz", "AP(", "AP()", "P", "AUC(voc2007)", "AP (voc2007)", "@", "F", "k", None, 3])
def test_unknown_names_list_the_known(name):
    with pytest.raises(MetricError, match=r"known: AP, AP\(voc2007\)"):
        parse_metric(name)
