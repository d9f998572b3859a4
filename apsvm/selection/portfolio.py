"""What ``apsvm cv`` searches by default: losses × bounds × feature maps × C, in two stages.

First every entry of the portfolio is *screened*: a few values of C, in one fold; those that are not hopeless in two
more; where rows are many, of a small sample of them, and the best of each of three kinds again of a larger one
(successive halving: Jamieson and Talwalkar, AISTATS 2016). The best few kinds that are near the top go on to the
*final*, over all rows in as many folds as were requested, with wider grids where the best stands at the edge. Entries
of a round share folds and feature maps, and the final goes on from a round that had all rows.

An entry costs what its trainer costs, so the portfolio is chosen for what was seen to win somewhere: ap on the features
as they are and on broken lines (``piecewise``), by both bounds; two to four components of it; the metric's own loss;
auc, wmw and 0-1 as they are the best on some metrics and sets; rules by ap and by auc, which hold their own against
boosted trees; products of pairs and an RBF kernel where the data is small. Bags are tried both ways: by their best row,
and made rows by their mean or by least, mean and greatest value. Entries stand from the simplest to the most complex:
of entries that are equal the first is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import JsonObject
from apsvm.data.bags import bags_of, rows_of_bags
from apsvm.data.features import FeatureMapError
from apsvm.data.features.mapped import dense_pays
from apsvm.data.labels import LabelOptions, Takes, Target, judge
from apsvm.losses import LOSSES, make_loss
from apsvm.losses.base import LossError
from apsvm.selection.average import Member
from apsvm.selection.bags import bags_as_rows, of_bags
from apsvm.selection.choice import Candidate, best
from apsvm.selection.cross_validation import SelectionError
from apsvm.selection.folds import FEW_POSITIVES, make_folds
from apsvm.selection.grids import Grid
from apsvm.selection.search import Followers, SettingsSearch, unseen
from apsvm.trainers import trainer_of
from apsvm.trainers.fitting import AUTO, FeatureOptions, map_by_rule
from apsvm.trainers.settings import Multiple, SettingValue, declared

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.metrics import Metric

#: Folds of the screening.
SCREENING_FOLDS = 3
#: This many kinds go on, to more rows by their best entry and those near it, to the final by their best alone, if that
#: is near the best of all: no further behind than this, or than the standard error of the difference; a difference of
#: ``CLEAR`` standard errors counts, however small.
FINALISTS, NEAR, CLEAR = 3, 0.01, 4.0


class Round(NamedTuple):
    """Feature values, rows and rows of the rarer class that a round of the screening looks at, at most."""

    values: int
    rows: int
    positives: int


ROUNDS = (Round(400_000, 2_500, 500), Round(2_000_000, 10_000, 2_000))
#: Entries that are behind the best by this many standard errors in the first fold are tried in no other. The errors are
#: those of one entry; entries that are judged by the same rows differ less.
HOPELESS = 2.0
#: Where a sample would be more than this share of the rows, all of them are screened, and the final goes on from there.
MOST_ROWS = 0.5
#: What ends the trial of an entry, and not the search.
FAILURES = FeatureMapError, LossError, FloatingPointError, np.linalg.LinAlgError
#: Beyond these many feature values or rows the final has as few folds as the screening.
MANY_VALUES, MANY_ROWS = 10_000_000, 20_000
#: Rows up to which kernels are tried, and features up to which all products are.
KERNEL_ROWS, PRODUCT_FEATURES = 5_000, 40
#: Kernels want a large C.
KERNEL_MULTIPLES = (1.0, 10.0, 100.0)
#: Of the default C, for rules: small ones correct the score of the boosting a little.
MULTIPLES_OF_RULES = (0.1, 1.0, 10.0)
#: Components that are tried, by the tight bound, with this many positives for each.
COMPONENTS, POSITIVES_A_COMPONENT = (2, 3, 4), 30
#: How bags become rows, beside bags whose best row decides.
POOLED = (("mean",), ("min", "mean", "max"))
#: Of the default C, by the bound; the first is for trainers without one.
MULTIPLES = {"hinge": (0.01, 0.1, 1.0, 10.0), "tight": (0.1, 1.0, 10.0)}


#: A setting's grid of more values is thinned out.
MOST_VALUES = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """What is tried: a loss on mapped features.

    Attributes
    ----------
    loss : as ``--loss`` names it
    settings : settings by name, each a single value
    features : what is done to the features
    labels : what is said of the labels; None: what the user said
    multiples : of the default C; empty: those of its bound
    """

    loss: str
    settings: JsonObject
    features: FeatureOptions
    labels: LabelOptions | None = None
    multiples: tuple[float, ...] = ()

    def __str__(self) -> str:
        features, scale, pool = self.features.features, self.features.scale, self.features.pool
        words = [self.loss, *self._settings_in_words(), features, *([] if scale in ("none", AUTO) else [scale])]
        return ", ".join(words if pool is None else [*words, f"pool {'/'.join(pool)}"])

    @property
    def kind(self) -> tuple[object, ...]:
        """What it shares with entries that rank much as it does: another loss is no other kind."""
        return self.features.features, self.features.pool, "components" in self.settings, "latent" in self.settings

    def _settings_in_words(self) -> Iterator[str]:
        for name, value in self.settings.items():
            yield name if value is True else str(value) if name == "bound" else f"{value} {name}"

    def grid(self, seed: int) -> Grid:
        """With a few values of C, or the trainer's own grid thinned out."""
        trainer = trainer_of(self.loss)
        declarations = declared(trainer.Settings)
        fixed = {name: value for name, value in self.settings.items() if declarations[name][1].grid is None}
        suggested: dict[str, Sequence[SettingValue]] = {
            name: (value,) for name, value in self.settings.items() if name not in fixed
        }
        for name, (_, about) in declarations.items():
            if name in suggested or about.grid is None:
                continue
            if about.multiples:
                bound = str(self.settings.get("bound", "hinge"))
                suggested[name] = tuple(map(Multiple, self.multiples or MULTIPLES[bound]))
            elif len(about.grid) > MOST_VALUES:
                suggested[name] = about.grid[1::2]
        grid = Grid.of(
            lambda settings: trainer(self.loss, settings),
            trainer.Settings(seed=seed, **fixed),
            suggested=suggested,
            features=self.features,
            labels=self.labels,
        )
        return replace(grid, climbs="components" in self.settings)


def loss_of_metric(metric: str) -> str | None:
    """The loss that is the shortfall of ``metric``, if there is one."""
    called = metric.lower()
    alike = called, called.replace("(exp)", ""), called.replace("ndcg", "ndcg(linear)")
    for name in dict.fromkeys((*alike, *LOSSES)):
        try:
            if make_loss(name).metric == metric:
                return name
        except ValueError:
            continue
    return None


def _is_graded(target: Target, dataset: Dataset) -> bool:
    return target.grades is not None and len(dataset.classes()) > 2


def losses_of(metric: str, target: Target, dataset: Dataset) -> list[str]:
    """ap, ndcg of grades, and the loss that is the metric's own."""
    losses = ("ap", "ndcg" if _is_graded(target, dataset) else None, loss_of_metric(metric))
    return list(dict.fromkeys(name for name in losses if name is not None))


def portfolio(
    dataset: Dataset, metric: str, features: FeatureOptions, target: Target, labels: LabelOptions
) -> list[Entry]:
    """What is worth trying for ``metric`` on these rows, which are judged as ``target`` says. ``features``: its
    constant feature, and its scaling, if it has one, are those of every entry. ``labels``: what the user said."""
    features = map_by_rule(dataset, features)
    n, d = dataset.X.shape
    # Sparse columns are left as they are by default: which of the two is better is seen.
    sparse = dataset.table is None and sp.issparse(dataset.X) and not dense_pays(dataset.X)
    standard = replace(features, scale="standard") if features.scale == AUTO and sparse else features
    piecewise = replace(standard, features="piecewise")
    plain = list(dict.fromkeys((standard, features)))
    graded, losses = _is_graded(target, dataset), losses_of(metric, target, dataset)
    if bags_of(dataset) is not None:
        return _with_labels(_of_bags(losses, standard, features), target, labels)
    entries = []
    for loss in losses:
        made = make_loss(loss)
        bounds = ("hinge",) if not made.over_rankings else ("tight",) if made.starts_from else ("hinge", "tight")
        for options in (*plain, piecewise) if loss == "ap" else (standard, piecewise):
            entries += [Entry(loss, {"bound": bound}, options) for bound in bounds]
    positives = int(target.relevant.sum())
    entries += [
        Entry("ap", {"bound": "tight", "components": components}, standard, multiples=(1.0,))
        for components in COMPONENTS
        if positives >= components * POSITIVES_A_COMPONENT
    ]
    if "auc" not in losses:
        entries.append(Entry("auc", {"bound": "hinge"}, standard))
    entries.append(Entry("wmw", {}, standard))
    if not graded:
        entries.append(Entry("zero-one", {"bound": "hinge"}, standard))
    of_rules = [name for name in losses if make_loss(name).over_rankings and make_loss(name).starts_from is None]
    entries += [
        Entry(loss, {"bound": "hinge"}, replace(features, features="rules"), multiples=MULTIPLES_OF_RULES)
        for loss in dict.fromkeys((of_rules[-1], "auc"))
    ]
    small = n <= KERNEL_ROWS
    others: list[tuple[str, bool, tuple[float, ...]]] = [
        ("products", small and d <= PRODUCT_FEATURES, ()),
        ("nystroem", small, KERNEL_MULTIPLES),
    ]
    entries += [
        Entry("ap", {"bound": "hinge"}, replace(standard, features=name), multiples=multiples)
        for name, tried, multiples in others
        if tried
    ]
    return _with_labels(entries, target, labels)


def _with_labels(entries: list[Entry], target: Target, labels: LabelOptions) -> list[Entry]:
    """Entries that say what losses of two classes take of grades as relevant, where the user did not."""
    if target.grades is None or labels != LabelOptions():
        return entries
    # Losses that know two classes take as relevant what metrics of two classes do.
    relevant = LabelOptions(relevant_from=float(target.grades[target.relevant].min()))
    takes = {entry.loss: trainer_of(entry.loss)(entry.loss).capabilities.labels for entry in entries}
    return [replace(entry, labels=relevant) if takes[entry.loss] is Takes.TWO_CLASSES else entry for entry in entries]


def _of_bags(losses: Sequence[str], options: FeatureOptions, unscaled: FeatureOptions) -> list[Entry]:
    """Bags by their best row, and bags made rows, by these losses and the 0-1 loss; bags made rows by auc and wmw as
    well, and by rules on them. ``options``: of all but rules, whose columns are of one scale."""
    entries = []
    for loss in dict.fromkeys((*losses, "zero-one", "auc")):
        made = make_loss(loss)
        bounds = ("tight",) if made.starts_from else ("hinge", "tight") if made.over_rankings else ("hinge",)
        if loss == "auc" and loss not in losses:
            bounds = ("hinge",)
        else:
            entries.append(Entry(loss, {"bound": bounds[0], "latent": True}, options))
        entries += [Entry(loss, {"bound": bound}, replace(options, pool=pool)) for pool in POOLED for bound in bounds]
    rules = Entry("auc", {"bound": "hinge"}, replace(unscaled, features="rules"), multiples=MULTIPLES_OF_RULES)
    for entry in (Entry("wmw", {}, options), rules):
        entries += [replace(entry, features=replace(entry.features, pool=pool)) for pool in POOLED]
    return entries


@dataclass(slots=True, eq=False)
class Screened:
    """The outcome of the screening: the best candidate of each entry, in the order of their means, and the entries that
    could not be tried, with the reason."""

    entries: list[tuple[Entry, Candidate]] = field(default_factory=list)
    left_out: list[tuple[Entry, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class _RaceOfEntries:
    """Entries, and the search that has one grid for each."""

    entries: Sequence[Entry]
    search: SettingsSearch

    def ranked(self, folds: int, metric: str) -> list[tuple[Entry, Candidate]]:
        """Those that were finished in this many folds, each at its best, the best first, the simplest of equal ones."""
        by_grid: dict[int, list[Candidate]] = {}
        for candidate in self.search.candidates(folds):
            by_grid.setdefault(candidate.grid, []).append(candidate)
        ranked = [(self.entries[grid], best(of, metric)) for grid, of in sorted(by_grid.items())]
        return sorted(ranked, key=lambda one: -one[1].mean(metric))

    def search_of(self, entries: Sequence[Entry]) -> SettingsSearch:
        """The search among these entries alone."""
        return self.search.only([self.entries.index(entry) for entry in entries])


class PortfolioSearch:
    """The two stages; parameters: see ``SettingsSearch``, whose object the final one is.

    Parameters
    ----------
    folds : of the final, and of the screening if they are fewer than three; None: five, three of large data
    judged_by : what the rows are judged by; None: as ``labels`` say, or else as grades where rows have queries or all
        metrics read grades, and as two classes otherwise

    Raises
    ------
    DataError : the labels do not fit
    FoldError : a fold would go without
    """

    def __init__(
        self,
        dataset: Dataset,
        metrics: Mapping[str, Metric],
        *,
        labels: LabelOptions = LabelOptions(),  # noqa: B008  # frozen
        features: FeatureOptions = FeatureOptions(),  # noqa: B008  # frozen
        folds: int | None = None,
        seed: int = 0,
        judged_by: Target | None = None,
        query_weights: Mapping[int, float] | None = None,
    ) -> None:
        self.metrics = metrics
        self.metric = next(iter(metrics))
        self._dataset = dataset
        self._seed = seed
        self._folds = folds or (SCREENING_FOLDS if _large(dataset) else 5)
        self._labels, self._query_weights = labels, query_weights
        # Where rows have queries, labels beyond ±1 and 0 are grades; else they may well be classes, and the user has to
        # say which one is positive.
        graded = all(metric.graded for metric in metrics.values()) or dataset.groups is not None
        self.target = judged_by or judge(dataset, labels, None, graded_metrics=graded)
        # Before anything is trained: whether there are enough rows for the folds of the final.
        only_grades = all(metric.graded for metric in metrics.values())
        units, target = bags_as_rows(dataset), of_bags(dataset, self.target)
        dealt = make_folds(target, units.groups, self._folds, seed, only_grades=only_grades, bags=units.bags)
        self._folds = len(dealt)
        self.entries = portfolio(dataset, self.metric, features, self.target, labels)
        queries = dataset.groups is not None
        self._own_losses = losses_of(self.metric, self.target, dataset)[1:] if queries else []
        self.screened = Screened()
        self.racing: Sequence[Entry] = self.entries
        self.racing_on = ""
        self._of_all_rows: _RaceOfEntries | None = None

    @property
    def caution(self) -> str | None:
        """What the comparison is not good for, if that is to be said."""
        positives = int(of_bags(self._dataset, self.target).relevant.sum())
        if positives >= FEW_POSITIVES:
            return None
        return (
            f"{positives} positives are few: which entry is best is mostly chance, and what it is worth on other rows "
            "a rough estimate"
        )

    def screen(
        self,
        jobs: int = 0,
        followers: Followers = Followers(),  # noqa: B008  # frozen
        ended: Callable[[Entry, Candidate | str], None] = unseen,
    ) -> None:
        """Tries every entry; after being stopped, what was finished counts. ``ended`` is called with each entry and its
        best candidate, or why there is none; paths that end are of the entries ``racing``, by the numbers of their
        grids.

        Raises
        ------
        FoldError, SelectionError, ValueError : as ``SettingsSearch``, of what does not depend on the entry
        FeatureMapError, LossError, FloatingPointError, LinAlgError : no entry can be tried; that of the last one
        """
        left, behind = self.entries, list[tuple[Entry, Candidate]]()
        for number, size in enumerate(ROUNDS, start=1):
            which = sample(self._dataset, self.target, self._seed, size)
            race = self._race_of(left, which, ended)
            self.racing_on = f"{len(race.search.dataset):,} {self._dataset.unit}"
            done, hopeless = self._raced(race, jobs, followers, ended)
            is_last = which is None or number == len(ROUNDS) or followers.should_stop()
            going_on = done if is_last else self._survivors(done)
            fell_behind = [*(one for one in done if not any(one is other for other in going_on)), *hopeless]
            for one in (*fell_behind, *(going_on if is_last else ())):
                ended(*one)
            behind = [*fell_behind, *behind]
            left = [entry for entry, _ in going_on]
            if which is None:
                self._of_all_rows = race
            if is_last:
                break
        self.screened.entries = [*going_on, *behind]

    def _race_of(
        self, entries: Sequence[Entry], which: NDArray[np.int64] | None, ended: Callable[[Entry, Candidate | str], None]
    ) -> _RaceOfEntries:
        """Entries on these rows, None: on all of them, of which the final goes on. Raises as ``screen``."""
        tried, grids = list[Entry](), list[Grid]()
        failure: Exception | None = None
        for entry in entries:
            try:
                grids.append(entry.grid(self._seed))
                tried.append(entry)
            except FAILURES as error:
                failure = error
                self.screened.left_out.append((entry, str(error)))
                ended(entry, str(error))
        if not grids and failure is not None:
            raise failure
        rows, target = self._dataset, self.target
        if which is not None:
            rows, target = rows.select(which), target.of(which)
        folds = self._folds if which is None else min(SCREENING_FOLDS, self._folds)
        return _RaceOfEntries(tried, self._search(rows, target, grids, folds))

    def _search(self, rows: Dataset, target: Target, grids: Sequence[Grid], folds: int) -> SettingsSearch:
        return SettingsSearch(
            rows,
            grids,
            self.metrics,
            folds=folds,
            seed=self._seed,
            judged_by=of_bags(rows, target),
            tolerated=FAILURES,
            labels=self._labels,
            query_weights=self._query_weights,
        )

    def _raced(
        self,
        race: _RaceOfEntries,
        jobs: int,
        followers: Followers,
        ended: Callable[[Entry, Candidate | str], None],
    ) -> tuple[list[tuple[Entry, Candidate]], list[tuple[Entry, Candidate]]]:
        """The entries at their best, the best first, and those that were hopeless in the first fold. Raises as
        ``screen``."""
        search, folds = race.search, min(SCREENING_FOLDS, len(race.search.folds))
        followers, self.racing = replace(followers, widened=unseen), race.entries
        search.run(jobs, followers, widen=False, folds=[0])
        for number, why in search.failures.items():
            self.screened.left_out.append((race.entries[number], why))
            ended(race.entries[number], why)
        at_first = race.ranked(1, self.metric)
        if not at_first and search.failures:
            raise SelectionError(next(reversed(search.failures.values())))
        hopeful = self._not_hopeless(at_first, search)
        grids = sorted(race.entries.index(entry) for entry, _ in hopeful)
        search.run(jobs, followers, widen=False, grids=grids, folds=range(1, folds))
        return race.ranked(folds, self.metric) or hopeful, at_first[len(hopeful) :]

    def _not_hopeless(
        self, ranked: Sequence[tuple[Entry, Candidate]], search: SettingsSearch
    ) -> list[tuple[Entry, Candidate]]:
        """Of entries after one fold, the best first, those that are not far behind: by no more than the
        ``HOPELESS``-fold standard error of a share among as many positives, or queries, as the fold has."""
        test = search.folds[0].test
        groups = search.dataset.groups
        count = int(search.target.of(test).relevant.sum()) if groups is None else np.unique(groups[test]).size
        top = ranked[0][1].mean(self.metric) if ranked else 0.0
        share = (count * min(max(top, 0.0), 1.0) + 1.0) / (count + 2.0)
        limit = top - HOPELESS * math.sqrt(share * (1.0 - share) / count)
        least = self._most_finalists
        return [one for place, one in enumerate(ranked) if place < least or one[1].mean(self.metric) >= limit]

    def _survivors(self, ranked: Sequence[tuple[Entry, Candidate]]) -> list[tuple[Entry, Candidate]]:
        """Of entries, the best first, those that go on to the next round: of as many kinds as there are finalists, so
        that several of one kind do not crowd out another that does better with more rows."""
        of_kinds: dict[object, list[tuple[Entry, Candidate]]] = {}
        for one in ranked:
            of_kinds.setdefault(one[0].kind, []).append(one)
        kinds = list(of_kinds.values())[:FINALISTS]
        near = [one for of_kind in kinds for one in self._near(of_kind, len(of_kind))]
        near = self._with_own_losses(near, ranked)
        return [one for one in ranked if any(one is other for other in near)]

    def _near(self, ranked: Sequence[tuple[Entry, Candidate]], most: int) -> list[tuple[Entry, Candidate]]:
        """Of entries, the best first, up to ``most`` that are behind it by no more than a standard error of the
        difference, fold by fold, or by ``NEAR``, unless that is ``CLEAR`` of them."""
        kept = []
        for place, one in enumerate(ranked[:most]):
            behind = np.subtract(ranked[0][1].values(self.metric), one[1].values(self.metric))
            limit = NEAR
            if behind.size > 1:
                error = float(behind.std(ddof=1)) / math.sqrt(behind.size)
                limit = max(min(NEAR, CLEAR * error), error)
            if place == 0 or behind.mean() <= limit:
                kept.append(one)
        return kept

    def finalists(self) -> list[Entry]:
        """The entries that go on."""
        return [entry for entry, _ in self._finalists()]

    def _finalists(self) -> list[tuple[Entry, Candidate]]:
        screened = self.screened.entries
        best_of_kind: dict[object, tuple[Entry, Candidate]] = {}
        raced = []
        for entry, candidate in screened:
            to_the_end = len(candidate.folds) == len(screened[0][1].folds)
            if entry in self.racing and to_the_end:  # of the last round
                best_of_kind.setdefault(entry.kind, (entry, candidate))
                raced.append((entry, candidate))
        return self._with_own_losses(self._near(list(best_of_kind.values()), self._most_finalists), raced)

    def _with_own_losses(
        self, kept: Sequence[tuple[Entry, Candidate]], ranked: Sequence[tuple[Entry, Candidate]]
    ) -> list[tuple[Entry, Candidate]]:
        """Of entries, the best first, those that are ``kept``, and of each of their kinds the best by a loss that is
        the metric's own: a few folds of queries do not push it out."""
        own: dict[object, tuple[Entry, Candidate]] = {}
        for one in ranked:
            if one[0].loss in self._own_losses:
                own.setdefault(one[0].kind, one)
        added = (own[kind] for kind in dict.fromkeys(entry.kind for entry, _ in kept) if kind in own)
        return [*kept, *(one for one in added if not any(one is other for other in kept))]

    @property
    def _most_finalists(self) -> int:
        """All together they train on no more rows than ``FINALISTS`` of ``MANY_ROWS``."""
        return min(max(1, FINALISTS * MANY_ROWS // len(self._dataset)), FINALISTS)

    def best_so_far(self) -> SettingsSearch:
        """The search over all rows for the best setting so far alone, the simplest where there is none: for a screening
        that had to be stopped."""
        entry = replace(self.entries[0], multiples=(1.0,))
        if self.screened.entries:
            entry, candidate = self.screened.entries[0]
            if self._of_all_rows is not None:
                return self._of_all_rows.search_of([entry])
            C = candidate.choice.get("C")
            if isinstance(C, Multiple):
                entry = replace(entry, multiples=(C.factor,))
        return self._search(self._dataset, self.target, [entry.grid(self._seed)], self._folds)

    def final(self) -> SettingsSearch:
        """The search among the finalists over all rows, to be run: what was screened on all rows goes on from there; of
        others C is sought around what was best."""
        finalists = self._finalists()
        if self._of_all_rows is None:
            grids = [_around(*finalist).grid(self._seed) for finalist in finalists]
            search = self._search(self._dataset, self.target, grids, self._folds)
            search.also = []
            return search
        race, entries = self._of_all_rows, [entry for entry, _ in finalists]
        search = race.search_of(entries)
        others = race.ranked(min(SCREENING_FOLDS, self._folds), self.metric)
        search.also = [Member(race.search, candidate) for entry, candidate in others if entry not in entries]
        search.raced = race.search.candidates(min(SCREENING_FOLDS, self._folds))
        return search


def _large(dataset: Dataset) -> bool:
    return dataset.n_values > MANY_VALUES or len(dataset) > MANY_ROWS


def _around(entry: Entry, candidate: Candidate) -> Entry:
    """The entry with the values of C at which the candidate was best, and those beside it."""
    C = candidate.choice.get("C")
    if not isinstance(C, Multiple):
        return entry
    return replace(entry, multiples=(0.1 * C.factor, C.factor, 10.0 * C.factor))


def sample(dataset: Dataset, target: Target, seed: int, size: Round) -> NDArray[np.int64] | None:
    """The rows that are screened, ascending: None for all of them, or most; where they are many, whole queries, or
    whole bags or rows: all of the rarer class, as far as they are few, and a share of the others."""
    share = min(size.values / max(1, dataset.n_values), size.rows / len(dataset))
    if share > MOST_ROWS:
        return None
    rng = np.random.default_rng(seed)
    if dataset.groups is not None:
        names, of_row = np.unique(dataset.groups, return_inverse=True)
        chosen = rng.random(names.size) < share
        chosen[rng.permutation(names.size)[: 4 * SCREENING_FOLDS]] = True
        return np.flatnonzero(chosen[of_row])
    relevant = of_bags(dataset, target).relevant
    keep = np.zeros(relevant.size, dtype=bool)
    for which in (relevant, ~relevant):
        units = np.flatnonzero(which)
        count = max(round(share * units.size), min(units.size, size.positives))
        keep[rng.permutation(units)[:count]] = True
    return rows_of_bags(dataset, np.flatnonzero(keep))
