"""Capabilities of a family of trainers, as data. The messages that refuse other input are written here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from apsvm._support.naming import option
from apsvm.data.takes import Takes

#: Options excluded by a way of taking labels, with the reason.
_REFUSED_BY_LABELS: Mapping[Takes, Mapping[str, str]] = {
    Takes.ORDER: dict.fromkeys(("positive_label", "one_vs_rest"), "this training looks at all labels at once"),
    Takes.CLASSES: dict.fromkeys(
        ("positive_label", "relevant_from", "one_vs_rest"), "each label is taken as positive in turn"
    ),
    Takes.NOTHING: dict.fromkeys(
        ("positive_label", "relevant_from", "one_vs_rest"), "this training does not look at labels"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Inputs and options that a family, or one plan of it, supports.

    Attributes
    ----------
    labels : Takes
        Way of taking labels.
    bags : bool
        True if it takes rows grouped by bag (``TrainingSet.bags``).
    queries, costs : bool
        True if ``qid:`` and ``cost:`` of the rows count.
    query_weights : bool
        True if weights of queries count (``--query-weights``).
    validation : bool
        True if rows of a second file can select the best epoch (``--validation``).
    constant : bool
        True if rows get a constant feature by default (``trainers.constant_feature``).
    refused : Mapping[str, str]
        Option or parameter (``scale``, ``features``, ``query_weights``, ``one_vs_rest``,
        ``positive_label``, ``relevant_from``) → short reason why the plan refuses it. Options not listed are accepted.
    """

    labels: Takes = Takes.TWO_CLASSES
    bags: bool = False
    queries: bool = True
    costs: bool = False
    query_weights: bool = False
    validation: bool = False
    constant: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)

    def refusing(self, **reasons: str) -> Capabilities:
        """The same capabilities without these options; ``reasons``: option → reason."""
        return replace(self, refused={**self.refused, **reasons})

    def refusal(self, name: str) -> str | None:
        """Sentence saying why the plan refuses the option ``name``; None if it accepts it."""
        reason = self.refused.get(name) or _REFUSED_BY_LABELS.get(self.labels, {}).get(name)
        return None if reason is None else f"{option(name)} does not apply: {reason}"
