"""``apsvm train``: from a data file to a model, with its certificate and its log."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from apsvm.cli.config import CONFIG_FILE, config_option
from apsvm.cli.progress import Display, show_summary, silent
from apsvm.cli.shared import (
    BAD_DATA,
    CANNOT_WRITE,
    INTERRUPTED,
    STOPPED_EARLY,
    TERMINATED,
    Failure,
    Number,
    NumberList,
    how_to_read,
    read_model,
    read_rows,
    reading,
    refuse_same_file,
    say,
    thread_count,
    writing,
)
from apsvm.losses import LOSSES
from apsvm.oracles import ORACLES
from apsvm.solvers.qp import BACKENDS

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.records import Log
    from apsvm.trainers.structured_svm import Trained

#: What ``--oracle`` offers: the oracles that serve a ranking loss, and the two-stage approximation.
ORACLE_CHOICES = ["auto", *(name for name in ORACLES if name not in ("zero-one", "brute-force")), "appx"]


@dataclass(frozen=True, slots=True)
class Options:
    """The command's options, as given."""

    loss: str
    oracle: str
    C: tuple[float, ...]
    epsilon: float
    max_iterations: int
    time_limit: float | None
    qp: str
    solver: str
    bias: float
    keep_easy: float
    zero_based: bool
    positive_label: float | None
    max_features: int | None
    threads: int
    seed: int
    warm_start: str | None
    log: str | None
    quiet: bool
    verbose: bool
    dtype: str
    sort_features: bool


@click.command(context_settings={"auto_envvar_prefix": "APSVM_TRAIN"})
@click.argument("data", metavar="DATA")
@click.argument("model", metavar="[MODEL]", required=False)
@click.option("--loss", type=click.Choice(list(LOSSES)), default="ap", show_default=True, help="What is optimised.")
@click.option(
    "--oracle",
    type=click.Choice(ORACLE_CHOICES),
    default="auto",
    show_default=True,
    help="How the most violated ranking is found. All but appx are exact and give the same model.",
)
@click.option(
    "-C", "--C", "C", type=NumberList(0, open_low=True), default="1", show_default=True, metavar="NUMBER[,NUMBER…]",
    help="Weight of the risk against ½‖w‖². Several values: a model each, MODEL with .C<value> in its name; each "
    "starts from those before.",
)  # fmt: skip
@click.option(
    "-e", "--epsilon", type=Number(0, open_low=True), default=1e-3, show_default=True,
    help="Stop when the duality gap is at most epsilon·C; in units of the loss.",
)  # fmt: skip
@click.option("--max-iterations", type=click.IntRange(1), default=10_000, show_default=True, help="Per stage.")
@click.option("--time-limit", type=Number(0), help="Seconds of training, checked between iterations. [default: none]")
@click.option(
    "--qp", type=click.Choice(list(BACKENDS)), default="auto", show_default=True,
    help="Solver of the working-set QP; auto: active-set, and cvxpy where its certificate falls short.",
)  # fmt: skip
@click.option(
    "--solver", type=click.Choice(["line-search", "cutting-plane"]), default="line-search", show_default=True,
    help="Where planes are taken: after an exact line search on scores, or at the QP's own point as in the papers.",
)  # fmt: skip
@click.option(
    "-B", "--bias", type=Number(), default=-1.0, show_default=True,
    help="Add a constant feature of this value to every row; none if negative.",
)  # fmt: skip
@click.option(
    "--keep-easy", type=Number(0, 100), default=50.0, show_default=True, metavar="PERCENT",
    help="For --oracle appx: the share of the binary SVM's easy rows that stay easy.",
)  # fmt: skip
@click.option(
    "--zero-based/--one-based", default=False, show_default=True, help="Whether feature indices count from 0 or 1."
)
@click.option("--positive-label", type=Number(), help="The label that is positive; all others are negative.")
@click.option("--max-features", type=click.IntRange(1, 2**62), help="Refuse a file with a feature beyond this many.")
@click.option(
    "--threads", type=click.IntRange(0, 1024), default=0, show_default=True,
    help="Threads for the row products; 0: as many as there are cores. The result does not depend on it.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True,
    help="Seed of what is random. The exact trainers draw nothing; it is written into the model.",
)  # fmt: skip
@click.option("--warm-start", metavar="MODEL", help="Start from the weights of this model.")
@click.option("--log", metavar="FILE", help="Write a JSON line for each oracle call and iteration.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.option("-v", "--verbose", is_flag=True, help="A line for every iteration, and the data at the start.")
@how_to_read
@config_option
def train(data: str, model: str | None, **given: Any) -> int:
    """Train a ranker on DATA and write MODEL.

    DATA is svmlight text, plain or compressed (gz, bz2, xz), - for stdin; a folder made by apsvm convert; or a .npz or
    .npy matrix with --labels.

    MODEL defaults to the data file's name with .model added, in the current folder.
    """
    options = Options(**given)
    if model is None:
        if data == "-":
            raise click.UsageError("DATA is standard input: name the MODEL to write")
        model = f"{os.path.basename(os.path.normpath(data))}.model"
    models = _model_names(model, options.C)
    _check_outputs(data, models, options)
    _check_oracle(options)
    if options.oracle != "appx" and not _is_default("keep_easy") and not options.quiet:
        say("warning: --keep-easy is for --oracle appx only; it is ignored here")

    from apsvm.model import LinearRanker
    from apsvm.solvers.cutting_plane import State

    began = time.perf_counter()
    dataset, relevant = _read(data, options)
    start = _start(dataset, options)
    read_seconds = time.perf_counter() - began
    if options.verbose and not options.quiet:
        say(
            f"{dataset.source}: {dataset.X.shape[0]} rows, {int(relevant.sum())} positive, "
            f"{dataset.X.shape[1]} features, {dataset.n_values} values, read in {read_seconds:.2f} s"
        )
    states = []
    width = dataset.X.shape[1]
    with _open_log(options.log) as log, _signals_caught() as signals:
        for C, name, trained in zip(
            options.C, models, _trained(dataset, relevant, options, log, signals, start), strict=False
        ):
            header = _header(dataset, relevant, options, C, trained)
            intercept = options.bias * float(trained.w[width]) if options.bias >= 0 else 0.0
            ranker = LinearRanker(trained.w[:width].copy(), intercept, header)
            with writing(name):
                ranker.save(name)
            log.write("end", C=C, state=trained.state, model=name, **header["certificate"])
            states.append(trained.state)
            if not options.quiet:
                show_summary(dataset, relevant, ranker, trained, read_seconds, time.perf_counter() - began)
                say(f"model written to {'standard output' if name == '-' else name}")
            began, read_seconds = time.perf_counter(), 0.0
            if trained.state is State.INTERRUPTED:
                return TERMINATED if signal.SIGTERM in signals else INTERRUPTED
        if log.failed:
            return CANNOT_WRITE
    return 0 if all(state is State.CONVERGED for state in states) else STOPPED_EARLY


def _model_names(model: str, values_of_C: tuple[float, ...]) -> list[str]:
    """The file of each C's model: MODEL itself for one C; name.C10.model for name.model and C = 10 among several."""
    if len(values_of_C) == 1:
        return [model]
    if model == "-":
        raise click.UsageError("several values of C make several models: they cannot all go to standard output")
    stem = model.removesuffix(".model")
    return [f"{stem}.C{C:g}{model[len(stem) :]}" for C in values_of_C]


def _check_outputs(data: str, models: list[str], options: Options) -> None:
    """Finds out now what would otherwise lose hours of work at the end."""
    from apsvm.files import check_writable

    if len(set(models)) < len(models):
        raise click.UsageError(f"values of C that give the same file name: {', '.join(f'{C:g}' for C in options.C)}")
    for output in (*models, options.log):
        if output is not None:
            # A model may replace the one it was started from.
            started_from = options.warm_start if output == options.log else None
            config = click.get_current_context().meta.get(CONFIG_FILE)
            refuse_same_file(output, data=data, config=config, warm_start=started_from)
            with writing(output):
                check_writable(output)
    places = ["-" if output == "-" else os.path.realpath(output) for output in (*models, options.log or "")]
    if places[-1] in places[:-1]:
        raise click.UsageError("the log and the model cannot go to the same place")


def _is_default(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.DEFAULT


def _check_oracle(options: Options) -> None:
    """Refuses an oracle that cannot serve the loss before the data is read."""
    from apsvm.losses.base import RankingLoss
    from apsvm.oracles import serving

    loss = LOSSES[options.loss]()
    fitting = [name for name in ORACLE_CHOICES if name in serving(loss)]
    if isinstance(loss, RankingLoss):
        fitting.append("appx")
    if options.oracle not in ("auto", *fitting):
        raise click.UsageError(
            f"--oracle {options.oracle} cannot serve --loss {options.loss}: choose {' or '.join(['auto', *fitting])}"
        )


def _read(path: str, options: Options) -> tuple[Dataset, Any]:
    dataset = read_rows(
        path,
        dtype=options.dtype,
        sort_features=options.sort_features,
        zero_based=options.zero_based,
        max_features=options.max_features,
        threads=options.threads,
    )
    with reading(dataset.source):
        relevant = dataset.positives(options.positive_label)
    if options.loss != "zero-one":
        from apsvm.risk import NothingToRankError, require_pairs

        try:
            require_pairs(relevant, dataset.groups)
        except NothingToRankError as error:
            raise Failure(BAD_DATA, f"{dataset.source}: {error}") from None
    above = dataset.relevance[~relevant].max()
    if options.positive_label is not None and above > options.positive_label and not options.quiet:
        say(f"warning: {dataset.source}: rows of labels up to {above:g}, above the positive one, are negatives")
    # w and each cutting plane are dense: a stray index of a billion would take the machine down instead of the run.
    needed = 8 * dataset.X.shape[1] * 8
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > memory:
        raise Failure(
            BAD_DATA,
            f"{dataset.source}: the highest feature index asks for {dataset.X.shape[1]:,} weights, more than this "
            "machine's memory can train; is it a stray index? (--max-features finds its line)",
        )
    return dataset, relevant


def _start(dataset: Dataset, options: Options) -> Any:
    """The weights of ``--warm-start``, one a feature of the data and the bias's last if there is one, or None."""
    if options.warm_start is None:
        return None
    if options.oracle == "appx":
        raise click.UsageError("--oracle appx starts from its own binary SVM: --warm-start does not apply")
    import numpy as np

    ranker = read_model(options.warm_start)
    width = dataset.X.shape[1]
    if ranker.zero_based != dataset.zero_based:
        raise Failure(BAD_DATA, f"{options.warm_start}: its features and the data's count from different bases")
    if ranker.coef[width:].any():
        raise Failure(
            BAD_DATA, f"{options.warm_start}: it has weights for {ranker.width} features, the data has {width}"
        )
    start = np.zeros(width + (options.bias >= 0))
    start[: min(width, ranker.width)] = ranker.coef[:width]
    if options.bias > 0:
        start[width] = ranker.intercept / options.bias
    return start


def _trained(
    dataset: Dataset, relevant: Any, options: Options, log: Log, signals: list[int], start: Any
) -> Iterator[Trained]:
    """One training after the other, for each C."""
    from threadpoolctl import threadpool_limits

    from apsvm.data.rows import Rows
    from apsvm.trainers.approximate import train_approximate
    from apsvm.trainers.structured_svm import Settings, TrainingSet, Watch, train_path

    bias = options.bias if options.bias >= 0 else None
    rows = Rows(dataset.X, bias=bias, threads=thread_count(options.threads))
    if dataset.costs is not None and options.loss != "zero-one" and not options.quiet:
        say(f"warning: {dataset.source}: cost: is used by --loss zero-one only; it is ignored here")
    training_set = TrainingSet(rows, relevant, dataset.groups, dataset.costs)
    settings = Settings(
        loss=options.loss,
        oracle=options.oracle,
        epsilon=options.epsilon,
        max_iterations=options.max_iterations,
        time_limit=options.time_limit,
        qp=options.qp,
        solver=options.solver,
    )
    display = Display(options.verbose)
    watch = Watch(log, silent if options.quiet else display, lambda: bool(signals))
    log.write(
        "start",
        loss=options.loss,
        oracle=options.oracle,
        C=options.C[0] if len(options.C) == 1 else list(options.C),
        epsilon=options.epsilon,
        n_rows=len(rows),
        n_features=dataset.X.shape[1],
        sha256=dataset.fingerprint,
    )
    # One BLAS thread: the solver's products are small, and more would make the last bits depend on their number.
    with threadpool_limits(1, user_api="blas"):
        try:
            results: Iterator[Trained]
            if options.oracle == "appx":
                results = (
                    train_approximate(training_set, replace(settings, C=C), options.keep_easy, watch) for C in options.C
                )
            else:
                results = train_path(training_set, settings, options.C, watch, start)
            for trained in results:
                display.finish()
                yield trained
        except FloatingPointError as error:
            raise Failure(BAD_DATA, f"{dataset.source}: {error}") from None


def _header(dataset: Dataset, relevant: Any, options: Options, C: float, trained: Trained) -> dict[str, Any]:
    """What the model's file tells of its making. No date: the same training gives the same file."""
    import platform
    from importlib.metadata import version

    import numpy as np

    bounds = trained.solution.certificate
    labels = np.unique(dataset.relevance[~relevant])
    return {
        "loss": options.loss,
        "oracle": " then ".join(stage.oracle for stage in trained.stages),
        "C": C,
        "epsilon": options.epsilon,
        "bias": options.bias,
        "keep_easy": options.keep_easy if options.oracle == "appx" else None,
        "seed": options.seed,
        "solver": options.solver,
        "state": str(trained.state),
        "iterations": sum(stage.solution.iterations for stage in trained.stages),
        "bound": "exact" if trained.exact else "approximate",
        "certificate": {"primal": bounds.primal, "dual": bounds.dual, "gap": bounds.gap, "tolerance": bounds.tolerance},
        "zero_based": dataset.zero_based,
        "positive_label": options.positive_label,
        "labels": {
            "positive": float(dataset.relevance[relevant][0]),
            # A regression target split by one value would list every other one.
            "negative": labels[:100].tolist(),
        },
        "data": {
            "file": os.path.basename(dataset.source),
            "sha256": dataset.fingerprint,
            "rows": int(dataset.X.shape[0]),
            "positives": int(relevant.sum()),
            "queries": trained.queries,
            "queries_skipped": trained.queries_skipped,
        },
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("apsvm", "numpy", "scipy", "cvxpy")},
        },
    }


class _Log:
    """The log. One that cannot be written any more is given up with a message; the training goes on."""

    def __init__(self, name: str, log: Log) -> None:
        self._name = name
        self._log: Log | None = log
        self.failed = False

    def write(self, event: str, **fields: Any) -> None:
        if self._log is None:
            return
        try:
            self._log.write(event, **fields)
        except BrokenPipeError:
            raise
        except OSError as error:
            self._log, self.failed = None, True
            say(f"error: cannot write {self._name}: {error.strerror or error}; the log ends here")


@contextmanager
def _open_log(path: str | None) -> Iterator[_Log]:
    """The log, opened only now that there is something to write: a run that fails before has destroyed nothing."""
    from apsvm.records import JsonLinesLog, NoLog

    if path is None:
        yield _Log("", NoLog())
    elif path == "-":
        yield _Log("standard output", JsonLinesLog(sys.stdout))
    else:
        with writing(path):
            # Each line is flushed as it is written; nothing is left for close() to lose.
            stream = open(path, "w", encoding="utf-8")  # noqa: SIM115
        try:
            yield _Log(path, JsonLinesLog(stream))
        finally:
            with suppress(OSError):
                stream.close()


@contextmanager
def _signals_caught() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM, so that the best model so far can be written; another one, half a second later or
    more, stops at once. A signal that was being ignored still is."""
    caught: list[int] = []
    first = 0.0

    def handler(number: int, frame: Any) -> None:
        nonlocal first
        now = time.monotonic()
        if caught and now - first > 0.5:
            raise Failure(TERMINATED if number == signal.SIGTERM else INTERRUPTED, "stopped, no model written")
        first = first or now
        caught.append(number)

    watched = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, handler) for number in watched}
    try:
        yield caught
    finally:
        for number, old in previous.items():
            signal.signal(number, old)
