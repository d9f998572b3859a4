"""RankNCG: the options of ``--loss wmw``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import click

from apsvm.cli.progress import Display
from apsvm.cli.recipes.base import Common, Job, Made, Recipe
from apsvm.cli.shared import BAD_DATA, Failure, Number, given_by_user, reading, say

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.model import LinearRanker
    from apsvm.solvers.smooth import SmoothIteration
    from apsvm.trainers.preferences import Classes, PreferenceGraph
    from apsvm.trainers.rank_ncg import Settings, Trained

#: What ``--graph`` has names for; anything else is a file.
NAMED_GRAPHS = ("full", "adjacent", "bipartite")
#: Edges and classes listed in a model's header.
MOST_LISTED = 100


class RankNCG(Recipe):
    """See the module."""

    title = "RankNCG (--loss wmw)"
    options: ClassVar[Sequence[click.Option]] = (
        click.Option(
            ["--objective"],
            type=click.Choice(["logistic", "erfc"]),
            default="logistic",
            show_default=True,
            help="What a pair costs: log(1 + e^-u), or the paper's approximation of it by erfc.",
        ),
        click.Option(
            ["--summation"],
            type=click.Choice(["auto", "direct", "fourier", "chebyshev"]),
            default="auto",
            show_default=True,
            help="How pairs are summed: one by one, by the paper's series (erfc only), or by cells, exact to rounding; "
            "auto: one by one or by cells, whichever is faster.",
        ),
        click.Option(
            ["--accuracy"],
            type=Number(1e-14, 0.5),
            default=1e-3,
            show_default=True,
            metavar="EPS",
            help="For --summation fourier: the largest error of a sum, for each unit of weight.",
        ),
        click.Option(
            ["--optimizer"],
            type=click.Choice(["lbfgs", "prcg"]),
            default="lbfgs",
            show_default=True,
            help="L-BFGS, or the paper's nonlinear conjugate gradients, which look at gradients only.",
        ),
        click.Option(
            ["--tolerance"],
            type=Number(0),
            metavar="EPS",
            help="Stop when the gradient's largest entry is at most EPS of that at w = 0.  [default: 1e-5, with "
            "--summation fourier 1e-3]",
        ),
        click.Option(
            ["-l", "--lambda", "lambda"],
            type=Number(0),
            default=1e-3,
            show_default=True,
            help="Weight of ½‖w‖² beside the loss.",
        ),
        click.Option(
            ["--normalize"],
            type=click.Choice(["pairs", "none"]),
            default="pairs",
            show_default=True,
            help="The loss is the mean over the pairs, or as in the paper their sum.",
        ),
        click.Option(
            ["--graph"],
            metavar="full|adjacent|bipartite|FILE",
            default="full",
            show_default=True,
            help="Which class is preferred to which: every one to all lower ones, to the next lower one, or to the "
            "lowest; or a file of lines 'i j', class j preferred to class i.",
        ),
        click.Option(
            ["--classes"],
            type=click.IntRange(2),
            help="Cut real targets into so many classes, 1 the lowest.  [default: each label is a class]",
        ),
        click.Option(
            ["--cut"],
            type=click.Choice(["frequency", "width"]),
            default="frequency",
            show_default=True,
            help="For --classes: into classes of equal frequency or width.",
        ),
    )

    def losses(self) -> Sequence[str]:
        return ["wmw"]

    def takes_classes(self, own: Mapping[str, Any]) -> bool:
        return False

    def inputs(self, own: Mapping[str, Any]) -> Mapping[str, str | None]:
        return {} if own["graph"] in NAMED_GRAPHS else {"graph": own["graph"]}

    def check(self, common: Common, own: Mapping[str, Any]) -> None:
        for option, value in (("positive-label", common.positive_label), ("relevant-from", common.relevant_from)):
            if value is not None:
                raise click.UsageError(
                    f"--{option} is not for --loss wmw: labels are classes, the higher the more relevant"
                )
        if own["summation"] == "fourier" and own["objective"] != "erfc":
            raise click.UsageError("--summation fourier is a series of erfc: it needs --objective erfc")
        if own["graph"] not in NAMED_GRAPHS:
            with reading(own["graph"]), open(own["graph"], "rb"):
                pass
        if common.quiet:
            return
        if own["summation"] != "fourier" and given_by_user("accuracy"):
            say("warning: --accuracy is for --summation fourier only; it is ignored here")
        if own["classes"] is None and given_by_user("cut"):
            say("warning: --cut is for --classes only; it is ignored here")

    def check_data(self, dataset: Dataset, common: Common, own: Mapping[str, Any]) -> None:
        from apsvm.trainers.pair_loss import NoPairsError, require_pairs

        classes = _classes(dataset, own)
        graph = _graph(classes, own)
        try:
            require_pairs(classes, graph, dataset.groups)
        except NoPairsError as error:
            raise Failure(BAD_DATA, f"{dataset.source}: {error}") from None
        if common.quiet:
            return
        if common.verbose:
            say(
                f"{dataset.source}: {classes.of_row.size} rows of {classes.names.size} classes, "
                f"{dataset.X.shape[1]} features, {dataset.n_values} values"
            )
        if own["classes"] is not None and classes.names.size < own["classes"]:
            say(
                f"warning: {dataset.source}: its labels can be cut into {classes.names.size} classes only, "
                f"not into {own['classes']}"
            )
        cycle = graph.cycle()
        if cycle is not None:
            around = " < ".join(f"{classes.names[number]:g}" for number in [*cycle, cycle[0]])
            say(f"warning: {own['graph']}: the preferences {around} are a cycle: no ranking has them all")
        if dataset.costs is not None:
            say(f"warning: {dataset.source}: cost: is not used by --loss wmw; it is ignored here")

    def train(self, job: Job) -> Iterator[Made]:
        from apsvm.trainers.rank_ncg import Settings, TrainingSet, Watch, train_rank_ncg

        common, own = job.common, job.own
        classes = _classes(job.dataset, own)
        graph = _graph(classes, own)
        data = TrainingSet(job.rows(), classes, graph, job.dataset.groups)
        settings = Settings(
            objective=own["objective"],
            summation=own["summation"],
            optimizer=own["optimizer"],
            normalize=own["normalize"],
            regularisation=own["lambda"],
            tolerance=own["tolerance"],
            accuracy=own["accuracy"],
            max_iterations=common.max_iterations,
            time_limit=common.time_limit,
        )
        display = Display(verbose=common.verbose, quiet=common.quiet)
        watch = Watch(job.log, lambda iteration: _show(display, iteration), job.should_stop)
        job.log_start(**_settings(settings), graph=graph.name, n_classes=classes.names.size)
        trained = train_rank_ncg(data, settings, watch, job.start())
        display.finish()
        yield _made(job, settings, classes, graph, trained)


def _classes(dataset: Dataset, own: Mapping[str, Any]) -> Classes:
    from apsvm.trainers.preferences import classes_by_label, cut_into_classes

    if own["classes"] is None:
        return classes_by_label(dataset.relevance)
    return cut_into_classes(dataset.relevance, own["classes"], own["cut"])


def _graph(classes: Classes, own: Mapping[str, Any]) -> PreferenceGraph:
    from apsvm.trainers.preferences import GRAPHS, GraphError, read_graph

    if own["graph"] in NAMED_GRAPHS:
        return GRAPHS[own["graph"]](classes.names.size)
    try:
        with reading(own["graph"]):
            return read_graph(own["graph"], classes.names)
    except GraphError as error:
        raise Failure(BAD_DATA, str(error)) from None


def _settings(settings: Settings) -> dict[str, Any]:
    return {
        "objective": settings.objective,
        "summation": settings.summation,
        "accuracy": settings.accuracy if settings.summation == "fourier" else None,
        "optimizer": settings.optimizer,
        "tolerance": settings.tolerance_used,
        "lambda": settings.regularisation,
        "normalize": settings.normalize,
    }


def _show(display: Display, iteration: SmoothIteration) -> None:
    objective = "" if iteration.objective is None else f"{iteration.objective:.7g}"
    display.line(
        f"{'iter':>6} {'objective':>14} {'gradient':>11} {'evaluations':>11} {'seconds':>9}",
        iteration.index,
        f"{iteration.index:>6d} {objective:>14} {iteration.gradient_norm:>11.4g} {iteration.evaluations:>11d} "
        f"{iteration.seconds:>9.2f}",
    )


def _made(job: Job, settings: Settings, classes: Classes, graph: PreferenceGraph, trained: Trained) -> Made:
    from apsvm.solvers.state import State

    solution = trained.solution
    result = {"value": solution.objective, "gradient_norm": solution.gradient_norm, "asked": solution.asked}
    ranker = job.ranker(trained.w, {**_header(settings, classes, graph, trained), "result": result})
    return Made(
        model=ranker,
        state=trained.state,
        converged=trained.state is State.CONVERGED,
        interrupted=trained.state is State.INTERRUPTED,
        record={"iterations": solution.iterations, "evaluations": solution.evaluations, **result},
        summary=[*_summary(settings, classes, trained), _statistic(job.dataset, classes, graph, ranker, trained)],
        seconds={part: span.wall_ns / 1e9 for part, span in trained.spans.items()},
    )


def _header(settings: Settings, classes: Classes, graph: PreferenceGraph, trained: Trained) -> dict[str, Any]:
    import numpy as np

    named = graph.name in NAMED_GRAPHS or graph.n_edges > MOST_LISTED
    edges = None if named else [[float(classes.names[i]), float(classes.names[j])] for i, j in graph.edges()]
    return {
        **_settings(settings),
        "graph": {"name": os.path.basename(graph.name), "edges": edges},
        "classes": {
            "count": int(classes.names.size),
            # Real targets may be as many classes as rows.
            "labels": classes.names[:MOST_LISTED].tolist(),
            "rows": np.bincount(classes.of_row)[:MOST_LISTED].tolist(),
            "cuts": None if classes.cuts is None else classes.cuts[:MOST_LISTED].tolist(),
        },
        "state": str(trained.state),
        "iterations": trained.solution.iterations,
        "evaluations": trained.solution.evaluations,
        "data": {"pairs": trained.pairs, "queries": trained.queries, "queries_skipped": trained.queries_skipped},
    }


def _summary(settings: Settings, classes: Classes, trained: Trained) -> list[str]:
    """Why it stopped, the objective, how small the gradient is there, and what was trained on."""
    solution = trained.solution
    sign = "≤" if solution.gradient_norm <= solution.asked else ">"
    queries = f" in {trained.queries} queries" if trained.queries > 1 else ""
    lines = [
        f"{trained.state} after {solution.iterations} iterations, {solution.evaluations} evaluations",
        f"objective {solution.objective:.9g} ({settings.objective}), gradient {solution.gradient_norm:.3g} {sign} "
        f"{solution.asked:.3g} asked for",
        f"{trained.pairs} pairs of {classes.names.size} classes{queries}",
    ]
    if trained.queries_skipped:
        lines.append(f"{trained.queries_skipped} queries without a pair were left out, {trained.queries} trained on")
    return lines


def _statistic(
    dataset: Dataset, classes: Classes, graph: PreferenceGraph, ranker: LinearRanker, trained: Trained
) -> str:
    from apsvm.metrics.evaluate import evaluate
    from apsvm.metrics.wilcoxon import WilcoxonMannWhitney

    metric = WilcoxonMannWhitney(graph.name if graph.name in NAMED_GRAPHS else tuple(graph.edges()))
    grouped = trained.queries > 1 or trained.queries_skipped > 0
    groups = dataset.groups if grouped else None
    # Class 0 is the lowest: the others are "relevant" to it in the bipartite graph.
    result = evaluate([metric], ranker.score(dataset.X), classes.of_row * 1.0, groups, relevant_from=1.0)
    mean = f" (mean of {trained.queries} queries)" if grouped else ""
    return f"training WMW {result.values[metric.name]:.6f}{mean}"
