"""Entries that ``apsvm cv`` compares by default: a table of losses × bounds × feature maps × C.

Each entry costs time, so the table holds what won on some data sets: ap and the metric's own loss on the features as
they are and on broken lines (``piecewise``), by both bounds; two components (``mixture``); rules by that loss and by
auc; and an RBF kernel on small matrices. On 121 tables of KEEL and R the kernel and products of pairs changed mean test
AP by .0003 ± .0018; wmw, 0-1 and auc on other features changed it by .0003 ± .002. Bags are tried by their best row,
and pooled to rows by their mean or by minimum, mean and maximum; there these losses are tried too. Entries are ordered
from the simplest to the most complex, and the first of equal entries wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from apsvm._support import sparse as sp
from apsvm._support.types import JsonObject
from apsvm.data.bags import bags_of
from apsvm.data.features.mapped import dense_pays
from apsvm.data.labels import LabelOptions, Takes, Target
from apsvm.losses import LOSSES, make_loss
from apsvm.selection import mixture
from apsvm.selection.grids import AROUND, Grid
from apsvm.trainers import trainer_of
from apsvm.trainers.fitting import AUTO, FeatureOptions, map_by_rule
from apsvm.trainers.settings import Multiple, SettingValue, declared

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset

#: Poolings of bags that are tried.
POOLED = (("mean",), ("min", "mean", "max"))
#: Largest number of rows of a matrix for an RBF kernel, and the multiples of the default C for it. It ranks images
#: better (the digit 8 of scikit-learn .972 → .980), and on tables it adds noise to the choice.
KERNEL_ROWS, FOR_KERNELS = 5_000, (1.0, 10.0, 100.0)
#: Larger grids of a setting are thinned out.
MOST_VALUES = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """A candidate of cv: a loss on mapped features.

    Attributes
    ----------
    loss : the loss, as ``--loss`` names it
    settings : settings by name, each with one value
    features : feature options
    labels : label options; None for those of the user
    multiples : multiples of the default C
    """

    loss: str
    settings: JsonObject
    features: FeatureOptions
    labels: LabelOptions | None = None
    multiples: tuple[float, ...] = AROUND

    def __str__(self) -> str:
        features, scale, pool = self.features.features, self.features.scale, self.features.pool
        words = [self.loss, *self._settings_in_words(), features, *([] if scale in ("none", AUTO) else [scale])]
        return ", ".join(words if pool is None else [*words, f"pool {'/'.join(pool)}"])

    @property
    def kind(self) -> tuple[object, ...]:
        """Key of entries that rank alike: it holds neither the loss nor the bound."""
        return self.features.features, self.features.pool, "components" in self.settings, "latent" in self.settings

    def _settings_in_words(self) -> Iterator[str]:
        for name, value in self.settings.items():
            yield name if value is True else str(value) if name == "bound" else f"{value} {name}"

    def grid(self, seed: int) -> Grid:
        """Grid with a few values of C, or the thinned grid of the trainer."""
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
                suggested[name] = tuple(map(Multiple, self.multiples))
            elif len(about.grid) > MOST_VALUES:
                suggested[name] = about.grid[1::2]
        return Grid.of(
            lambda settings: trainer(self.loss, settings),
            trainer.Settings(seed=seed, **fixed),
            suggested=suggested,
            features=self.features,
            labels=self.labels,
        )


def loss_of_metric(metric: str) -> str | None:
    """The loss 1 − ``metric``, or None."""
    called = metric.lower()
    alike = called, called.replace("(exp)", ""), called.replace("ndcg", "ndcg(linear)")
    for name in dict.fromkeys((*alike, *LOSSES)):
        try:
            if make_loss(name).metric == metric:
                return name
        except ValueError:
            continue
    return None


def losses_of(metric: str, target: Target) -> list[str]:
    """ap, ndcg for grades, and the metric's own loss."""
    losses = ("ap", "ndcg" if target.is_graded else None, loss_of_metric(metric))
    return list(dict.fromkeys(name for name in losses if name is not None))


def portfolio(
    dataset: Dataset, metric: str, features: FeatureOptions, target: Target, labels: LabelOptions
) -> list[Entry]:
    """Entries to try for ``metric`` on these rows.

    Parameters
    ----------
    features : constant feature and scaling of all entries, if they are set
    target : meaning of the labels to the metrics
    labels : label options of the user
    """
    features = map_by_rule(dataset, features)
    # Sparse columns are unscaled by default; both ways are tried.
    sparse = dataset.table is None and sp.issparse(dataset.X) and not dense_pays(dataset.X)
    standard = replace(features, scale="standard") if features.scale == AUTO and sparse else features
    piecewise = replace(standard, features="piecewise")
    plain = list(dict.fromkeys((standard, features)))
    losses = losses_of(metric, target)
    if bags_of(dataset) is not None:
        return _with_labels(_of_bags(losses, standard, features), target, labels)
    entries = []
    for loss in losses:
        made = make_loss(loss)
        bounds = ("hinge",) if not made.over_rankings else ("tight",) if made.starts_from else ("hinge", "tight")
        for options in (*plain, piecewise) if loss == "ap" else (standard, piecewise):
            entries += [Entry(loss, {"bound": bound}, options) for bound in bounds]
    if mixture.has_enough_positives(target, dataset.X.shape[1]):
        settings = {"bound": "tight", "components": mixture.COMPONENTS}
        entries.append(Entry("ap", settings, standard, multiples=(mixture.MULTIPLE,)))
    of_rules = [name for name in losses if make_loss(name).over_rankings and make_loss(name).starts_from is None]
    # In queries rules by auc would push out those by the metric's own loss.
    by_rules = (of_rules[-1], *(() if dataset.groups is not None else ("auc",)))
    rules = replace(features, features="rules")
    entries += [Entry(loss, {"bound": "hinge"}, rules) for loss in dict.fromkeys(by_rules)]
    if dataset.table is None and len(dataset) <= KERNEL_ROWS:
        kernel = replace(standard, features="nystroem")
        entries.append(Entry("ap", {"bound": "hinge"}, kernel, multiples=FOR_KERNELS))
    return _with_labels(entries, target, labels)


def _with_labels(entries: list[Entry], target: Target, labels: LabelOptions) -> list[Entry]:
    """Entries with the relevant grades for losses of two classes, unless the user named them."""
    if target.grades is None or labels != LabelOptions():
        return entries
    # Losses of two classes share the relevant grades with metrics of two classes.
    relevant = LabelOptions(relevant_from=float(target.grades[target.relevant].min()))
    takes = {entry.loss: trainer_of(entry.loss)(entry.loss).capabilities.labels for entry in entries}
    return [replace(entry, labels=relevant) if takes[entry.loss] is Takes.TWO_CLASSES else entry for entry in entries]


def _of_bags(losses: Sequence[str], options: FeatureOptions, of_rules: FeatureOptions) -> list[Entry]:
    """Entries for bags: by the best row with these losses and the 0-1 loss; pooled with these, auc and wmw, and with
    rules.

    Parameters
    ----------
    options : feature options of all entries but rules
    of_rules : feature options of rules, but for their name
    """
    entries = []
    for loss in dict.fromkeys((*losses, "zero-one", "auc")):
        made = make_loss(loss)
        bounds = ("tight",) if made.starts_from else ("hinge", "tight") if made.over_rankings else ("hinge",)
        if loss == "auc" and loss not in losses:
            bounds = ("hinge",)
        else:
            entries.append(Entry(loss, {"bound": bounds[0], "latent": True}, options))
        entries += [Entry(loss, {"bound": bound}, replace(options, pool=pool)) for pool in POOLED for bound in bounds]
    for entry in (Entry("wmw", {}, options), Entry("auc", {"bound": "hinge"}, replace(of_rules, features="rules"))):
        entries += [replace(entry, features=replace(entry.features, pool=pool)) for pool in POOLED]
    return entries
