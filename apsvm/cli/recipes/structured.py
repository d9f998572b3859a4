"""The structured SVM and its two-stage approximation: the options of ``--loss ap``, ``zero-one`` and their kin."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import click

from apsvm.cli.progress import Display
from apsvm.cli.recipes.base import Common, Job, Made, Recipe, labels
from apsvm.cli.shared import BAD_DATA, Failure, Multiple, Number, NumberList, given_by_user, reading, say
from apsvm.losses import LOSSES
from apsvm.oracles import ORACLES
from apsvm.registry import spelled
from apsvm.solvers.qp import BACKENDS

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.losses.base import Loss
    from apsvm.model import LinearRanker
    from apsvm.trainers.stage import Progress, Trained, TrainingSet

#: What ``--oracle`` offers: the oracles that serve a ranking loss, and the two-stage approximation.
ORACLE_CHOICES = ["auto", *(name for name in ORACLES if name not in ("zero-one", "brute-force")), "appx"]


class Fit(NamedTuple):
    """What was trained for a value of C, and how this was given."""

    given: float | Multiple
    C: float
    trained: Trained


class Structured(Recipe):
    """See the module."""

    title = "Structured SVM (--loss ap, ndcg, mrr, auc, f1, …)"
    options: ClassVar[Sequence[click.Option]] = (
        click.Option(
            ["--oracle"],
            type=click.Choice(ORACLE_CHOICES),
            default="auto",
            show_default=True,
            help="How the most violated ranking is found. All but appx are exact and give the same model.",
        ),
        click.Option(
            ["-C", "--C", "C"],
            type=NumberList(0, open_low=True, multiples=True),
            default="auto",
            show_default=True,
            metavar="NUMBER[,NUMBER…]",
            help="Weight of the risk against ½‖w‖². auto: told from the scale of the features; 10x: ten times that. "
            "0.01:100:log10: decades from 0.01 to 100, log2: doublings. Several values: a model each, MODEL with "
            ".C<value> in its name; each starts from those before.",
        ),
        click.Option(
            ["-e", "--epsilon"],
            type=Number(0, open_low=True),
            default=1e-3,
            show_default=True,
            help="Stop when the duality gap is at most epsilon·C; in units of the loss.",
        ),
        click.Option(
            ["--qp"],
            type=click.Choice(list(BACKENDS)),
            default="auto",
            show_default=True,
            help="Solver of the working-set QP; auto: active-set, and cvxpy where its certificate falls short.",
        ),
        click.Option(
            ["--solver"],
            type=click.Choice(["line-search", "cutting-plane"]),
            default="line-search",
            show_default=True,
            help="Where planes are taken: after an exact line search on scores, or at the QP's own point as in the "
            "papers.",
        ),
        click.Option(
            ["--bound"],
            type=click.Choice(["hinge", "tight"]),
            default="hinge",
            show_default=True,
            help="What bounds the loss from above: the convex structured hinge, or the tighter ramp, from the hinge's "
            "minimiser (and --warm-start's model) to a stationary point: often better where some positives are "
            "hopeless, for several times the work at the larger C that it wants.",
        ),
        click.Option(
            ["--log-ranks"],
            is_flag=True,
            help="Into the log with the most violated rankings (of one list, not of queries or grades): apsvm plot "
            "heatmap draws them.",
        ),
        click.Option(
            ["--query-weights"],
            metavar="FILE",
            help="Lines 'qid weight': the risk is this weighted mean over the queries; 1 where not named.",
        ),
        click.Option(
            ["--keep-easy"],
            type=Number(0, 100),
            default=50.0,
            show_default=True,
            metavar="PERCENT",
            help="For --oracle appx: the share of the binary SVM's easy rows that stay easy.",
        ),
    )

    def losses(self) -> Sequence[str]:
        return list(LOSSES)

    def serves(self, loss: str) -> bool:
        return (":" in loss and not loss.endswith(")")) or spelled(loss, LOSSES) is not None

    def check(self, common: Common, own: Mapping[str, Any]) -> None:
        from apsvm.losses.base import LossOverRankings, RankingLoss
        from apsvm.oracles import serving

        loss = _loss(common)
        fitting = [name for name in ORACLE_CHOICES if name in serving(loss)]
        if isinstance(loss, RankingLoss):
            fitting.append("appx")
        if own["oracle"] not in ("auto", *fitting):
            raise click.UsageError(
                f"--oracle {own['oracle']} cannot serve --loss {common.loss}: choose {', '.join(['auto', *fitting])}"
            )
        if own["bound"] == "tight" and not isinstance(loss, LossOverRankings):
            raise click.UsageError(
                f"--bound tight is for losses over rankings, and {common.loss} is none: leave it out"
            )
        if own["log_ranks"]:
            if common.log is None:
                raise click.UsageError("--log-ranks needs a log to write to: --log FILE or --run-dir FOLDER")
            if not isinstance(loss, LossOverRankings):
                raise click.UsageError(f"--log-ranks is for losses over rankings, and {common.loss} is none")
        if own["query_weights"] is not None and not loss.by_query:
            raise click.UsageError(f"--query-weights: --loss {common.loss} takes all rows as one query")
        if own["oracle"] == "appx" and common.warm_start is not None:
            raise click.UsageError("--oracle appx starts from its own binary SVM: --warm-start does not apply")
        if own["oracle"] != "appx" and given_by_user("keep_easy") and not common.quiet:
            say("warning: --keep-easy is for --oracle appx only; it is ignored here")

    def models(self, own: Mapping[str, Any]) -> Sequence[str]:
        if len(own["C"]) == 1:
            return [""]
        names = [f".C{shown_C(C)}" for C in own["C"]]
        if len(set(names)) < len(names):
            raise click.UsageError(f"values of C that give the same file name: {', '.join(names)}")
        return names

    def check_data(self, dataset: Dataset, common: Common, own: Mapping[str, Any]) -> None:
        relevant, grades = _labels(dataset, common, own)
        if own["query_weights"] is not None and dataset.groups is None:
            raise Failure(BAD_DATA, f"{dataset.source}: --query-weights needs rows with qid:, found none")
        if own["log_ranks"]:
            self._check_one_ranking(dataset, relevant, grades)
        if _loss(common).by_query and grades is None:
            from apsvm.risk import NothingToRankError, require_pairs

            try:
                require_pairs(relevant, dataset.groups)
            except NothingToRankError as error:
                raise Failure(BAD_DATA, f"{dataset.source}: {error}") from None
        if common.quiet:
            return
        if common.verbose:
            say(
                f"{dataset.source}: {relevant.size} rows, {int(relevant.sum())} positive, "
                f"{dataset.X.shape[1]} features, {dataset.n_values} values"
            )
        above = dataset.classes(~relevant).max(initial=-math.inf)
        if common.positive_label is not None and not common.one_vs_rest and above > common.positive_label:
            say(f"warning: {dataset.source}: rows of labels up to {above:g}, above the positive one, are negatives")
        if dataset.costs is not None and common.loss != "zero-one":
            say(f"warning: {dataset.source}: cost: is used by --loss zero-one only; it is ignored here")

    def _check_one_ranking(self, dataset: Dataset, relevant: Any, grades: Any) -> None:
        import numpy as np

        groups = dataset.groups
        found = 1 if groups is None else np.intersect1d(groups[relevant], groups[~relevant]).size
        if grades is not None or found > 1:
            what = f"{found} queries" if grades is None else "grades (--relevant-from makes two classes of them)"
            raise Failure(BAD_DATA, f"{dataset.source}: --log-ranks needs one ranking of two classes, found {what}")

    def train(self, job: Job) -> Iterator[Made]:
        relevant = _labels(job.dataset, job.common, job.own)[0]
        for fit in self.fits(job):
            yield _made(job, relevant, fit)

    def fits(self, job: Job) -> Iterator[Fit]:
        """What is trained for each value of C in turn, on the job's rows; fewer if it is stopped."""
        from apsvm.trainers.approximate import train_approximate
        from apsvm.trainers.stage import Settings, TrainingSet, Watch
        from apsvm.trainers.structured_svm import train_path

        common, own, dataset = job.common, job.own, job.dataset
        relevant, grades = _labels(dataset, common, own)
        training_set = TrainingSet(
            job.rows(),
            job.of_rows(relevant),
            job.of_rows(dataset.groups),
            job.of_rows(dataset.costs),
            _query_weights(own),
            job.of_rows(grades),
        )
        settings = Settings(
            loss=common.loss,
            oracle=own["oracle"],
            epsilon=own["epsilon"],
            max_iterations=common.max_iterations,
            time_limit=common.time_limit,
            qp=own["qp"],
            solver=own["solver"],
            bound=own["bound"],
            log_ranks=own["log_ranks"],
        )
        display = Display(verbose=common.verbose, quiet=common.quiet)
        watch = Watch(job.log, lambda progress: _show(display, progress), job.should_stop)
        values = values_of_C(own["C"], training_set, common.loss, own["bound"])
        job.log_start(oracle=own["oracle"], C=values[0] if len(values) == 1 else values, epsilon=own["epsilon"])
        results: Iterator[Trained]
        if own["oracle"] == "appx":
            results = (train_approximate(training_set, replace(settings, C=C), own["keep_easy"], watch) for C in values)
        else:
            results = train_path(training_set, settings, values, watch, job.start())
        for given, C, trained in zip(own["C"], values, results, strict=False):
            display.finish()
            yield Fit(given, C, trained)


def shown_C(given: float | Multiple) -> str:
    """As in names of files and in tables."""
    return f"{given:g}" if isinstance(given, float) else str(given)


def values_of_C(given: Sequence[float | Multiple], data: TrainingSet, loss: str, bound: str) -> list[float]:
    """What ``-C`` means for these rows."""
    from apsvm.trainers.default_c import default_C

    default = default_C(data, loss, bound) if any(isinstance(C, Multiple) for C in given) else 1.0
    values = [C.factor * default if isinstance(C, Multiple) else C for C in given]
    for C, value in zip(given, values, strict=True):
        if not 0.0 < value < math.inf:
            raise click.UsageError(f"-C {C}: {C} of C = {default:g}, the default for these rows, is beyond float64")
    return values


def _loss(common: Common) -> Loss:
    from apsvm.losses import make_loss
    from apsvm.losses.base import LossError

    try:
        return make_loss(common.loss)
    except LossError as error:
        raise click.UsageError(f"--loss: {error}") from None


def _labels(dataset: Dataset, common: Common, own: Mapping[str, Any]) -> tuple[Any, Any]:
    """As ``labels``; the two-stage approximation looks at no grades."""
    if own["oracle"] != "appx":
        return labels(dataset, common, _loss(common))
    with reading(dataset.source):
        return dataset.positives(common.positive_label, common.relevant_from), None


def _query_weights(own: Mapping[str, Any]) -> dict[int, float] | None:
    from apsvm.data.query_weights import read_query_weights

    path = own["query_weights"]
    if path is None:
        return None
    with reading(path):
        return read_query_weights(path)


def _show(display: Display, progress: Progress) -> None:
    # The descent of the tight bound has no lower bound to show.
    known = progress.gap < math.inf
    bounds = f"{progress.dual:>14.7g} {progress.gap:>11.4g} {progress.planes:>7d}" if known else f"{'':>34}"
    heading = f"{'iter':>6} {'primal':>14} {'dual':>14} {'gap':>11} {'planes':>7} {'seconds':>9}"
    display.line(
        f"{heading}  {progress.stage} C={progress.C:g}",
        progress.iteration,
        f"{progress.iteration:>6d} {progress.primal:>14.7g} {bounds} {progress.seconds:>9.2f}",
    )


def _made(job: Job, relevant: Any, fit: Fit) -> Made:
    from apsvm.solvers.state import State

    given, C, trained = fit
    ranker = job.ranker(trained.w, _header(job, relevant, fit))
    seconds: dict[str, float] = {}
    for stage in trained.stages:
        for part, span in stage.spans.items():
            seconds[part] = seconds.get(part, 0.0) + span.wall_ns / 1e9
    return Made(
        model=ranker,
        state=trained.state,
        converged=trained.state is State.CONVERGED,
        interrupted=trained.state is State.INTERRUPTED,
        record={"C": C, **ranker.header["certificate"]},
        summary=[*_how_C_was_found(C, given), *_summary(job.dataset, relevant, ranker, trained)],
        seconds=seconds,
    )


def _how_C_was_found(C: float, given: float | Multiple) -> list[str]:
    if not isinstance(given, Multiple):
        return []
    times = "" if given.factor == 1.0 else f"{given.factor:g} times "
    return [f"C = {C:.6g}, {times}what fits the scale of the features (-C auto)"]


def _header(job: Job, relevant: Any, fit: Fit) -> dict[str, Any]:
    given, C, trained = fit
    bounds = trained.solution.certificate
    own = job.own
    others, positive = job.dataset.classes(~relevant), job.common.positive_label
    return {
        "oracle": " then ".join(stage.oracle for stage in trained.stages),
        "C": C,
        "C_of_default": given.factor if isinstance(given, Multiple) else None,
        "epsilon": own["epsilon"],
        "keep_easy": own["keep_easy"] if own["oracle"] == "appx" else None,
        "solver": own["solver"],
        "state": str(trained.state),
        "iterations": _iterations(trained),
        "bound": own["bound"],
        "exact": trained.exact,
        "hinge_objective": trained.hinge_objective,
        "certificate": {"primal": bounds.primal, "dual": bounds.dual, "gap": bounds.gap, "tolerance": bounds.tolerance},
        "labels": {
            "positive": float(job.dataset.relevance[relevant][0]) if positive is None else positive,
            # A regression target split by one value would list every other one.
            "negative": others[:100].tolist(),
        },
        "data": {
            "positives": int(relevant.sum()),
            "queries": trained.queries,
            "queries_skipped": trained.queries_skipped,
        },
    }


def _iterations(trained: Trained) -> int:
    return sum(stage.solution.iterations for stage in trained.stages)


def _summary(dataset: Dataset, relevant: Any, ranker: LinearRanker, trained: Trained) -> list[str]:
    """Why it stopped, the certificate and the training AP."""
    from apsvm.metrics.evaluate import evaluate

    bounds = trained.solution.certificate
    sign = "≤" if bounds.reached else ">"
    kind = "exact" if trained.exact else "approximate: a bound for the difficult rows' problem, not for the whole loss"
    lines = [f"{trained.state} after {_iterations(trained)} iterations", *trained.notes]
    if trained.hinge_objective is None:
        lines.append(
            f"certificate: primal {bounds.primal:.6g}, dual {bounds.dual:.6g}, gap {bounds.gap:.3g} {sign} "
            f"{bounds.tolerance:.3g} asked for ({kind})"
        )
    else:
        lines.append(
            f"certificate: stationary point of objective {bounds.primal:.6g}, from which the convex majorant can gain "
            f"{bounds.gap:.3g} {sign} {bounds.tolerance:.3g} asked for; the convex hinge came to "
            f"{trained.hinge_objective:.6g} ({kind})"
        )
    if trained.queries_skipped:
        lines.append(
            f"{trained.queries_skipped} queries without both classes were left out, {trained.queries} trained on"
        )
    fallbacks = sum(stage.qp_fallbacks for stage in trained.stages)
    if fallbacks:
        lines.append(f"{fallbacks} working-set QPs fell back to cvxpy")
    grouped = dataset.groups is not None and trained.queries > 1
    result = evaluate(["AP"], ranker.score(dataset.X), relevant, groups=dataset.groups if grouped else None)
    mean = f", mean of {result.n_groups - result.groups_skipped} queries" if grouped else ""
    lines.append(f"training AP {result.values['AP']:.6f} ({result.n_positives} of {result.n_rows} rows positive{mean})")
    return lines
