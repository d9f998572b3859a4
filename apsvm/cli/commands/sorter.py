"""``apsvm sorter``: trains the nets that stand in for sorting in a network's loss, and says how good they are."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from apsvm._support.shown import printable
from apsvm._support.types import JsonDict
from apsvm.cli.options.config import config_option
from apsvm.cli.options.parameters import Number, Several
from apsvm.cli.options.training import check_output, exit_code, signals_caught
from apsvm.cli.output.progress import Display
from apsvm.cli.output.training_log import open_log
from apsvm.cli.shared import (
    BAD_DATA,
    CANNOT_WRITE,
    MISSING,
    STOPPED_EARLY,
    Failure,
    given_by_user,
    put,
    reading,
    say,
    writing,
)
from apsvm.trainers.base import Progress

if TYPE_CHECKING:
    import torch

    from apsvm._support.log import Log
    from apsvm.torch.checkpoint import SorterHeader
    from apsvm.torch.sorters import Sorter
    from apsvm.torch.sorters.quality import SorterQuality
    from apsvm.torch.sorters.training import SorterProgress, SorterTraining

#: What a sorter of any length is judged on.
LENGTHS = (10, 50, 100, 1000)
#: What is added to the name of a sorter's file for that of its training.
TRAINING = ".training"
#: Lists that a trained sorter is judged on, and seconds between two savings of its training.
JUDGED_ON, SECONDS_A_SAVING = 2000, 60.0
#: Scores of a list: n² of the handcrafted sorter's comparisons must fit into memory.
MOST_SCORES = 100_000


class WholeNumber(Number):
    """A whole number, also as ``1e7``."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = super().convert(value, param, ctx)
        if number != int(number):
            self.fail(f"expected a whole number, found {value!r}")
        return int(number)


@click.group()
def sorter() -> None:
    """Train nets that approximate ranks, the sorters of SoDeep, for losses of a network's ranking.

    \b
    apsvm sorter train --architecture neighbours --time-limit 60 mine.safetensors
    apsvm sorter eval mine.safetensors neighbours 'handcrafted(10)' 'laplace(10)'
    apsvm sorter info mine.safetensors

    In Python: apsvm.torch.SpearmanLoss("mine.safetensors"). Needs PyTorch: pip install 'apsvm[torch]'.
    """


@sorter.command(context_settings={"auto_envvar_prefix": "APSVM_SORTER_TRAIN"})
@click.argument("output", metavar="OUTPUT")
@click.option(
    "--architecture", required=True, metavar="NAME",
    help="neighbours, lstm, lstm-large, gru-constrained, gru-proj, gru-sum, cnn, cnn(DEPTH) or mlp.",
)  # fmt: skip
@click.option("--length", type=click.IntRange(1, MOST_SCORES), default=100, show_default=True, help="Scores of a list.")
@click.option(
    "--longest", type=click.IntRange(1, MOST_SCORES),
    help="Of neighbours and gru-constrained, which take many lengths: lists of --length to this.  [default: --length]",
)  # fmt: skip
@click.option(
    "--samples", type=WholeNumber(1, 1e15),
    help="Made lists to train on, in all: 1e7. This or --time-limit, or whichever comes first.",
)  # fmt: skip
@click.option("--time-limit", type=Number(0), help="Seconds of training.")
@click.option("--batch", type=click.IntRange(1, 10**6), default=512, show_default=True, help="Lists of a step.")
@click.option(
    "--learning-rate", type=Number(0, open_low=True),
    help="Adam's step length.  [default: .001, of the LSTMs, whose map is trained, 1e-5]",
)  # fmt: skip
@click.option(
    "--halve-every", type=WholeNumber(1, 1e15), default=10_000_000, show_default=True,
    help="Lists after which it is halved.",
)  # fmt: skip
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    help="Seed of the first weights and of the lists.",
)
@click.option("--device", default="cpu", show_default=True, help="Where PyTorch computes: cpu, cuda, cuda:1, mps.")
@click.option(
    "--threads", type=click.IntRange(0, 1024), default=0, show_default=True, help="Threads; 0: as PyTorch likes."
)
@click.option("--resume", is_flag=True, help=f"Go on from OUTPUT{TRAINING}, which every training leaves.")
@click.option("--log", metavar="FILE", help="Write a JSON line for every few batches.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors and cautions.")
@click.option("-v", "--verbose", is_flag=True, help="Every line of progress.")
@config_option
def train(output: str, **options: Any) -> int:
    """Train a sorter on made lists and write OUTPUT, a file of safetensors.

    Beside it stands OUTPUT.training, written once a minute, from which --resume goes on with the same steps, to the
    bit, as a training that never stopped.
    """
    if options["samples"] is None and options["time_limit"] is None:
        raise click.UsageError("give --samples or --time-limit: how long to train")
    if output == "-":
        raise click.UsageError("the training stands beside OUTPUT: it cannot be standard output")
    with torch_needed():
        training = _training(output, options)
    with signals_caught() as signals, open_log(options["log"]) as log:
        display = Display(verbose=options["verbose"], quiet=options["quiet"])
        state = _run(training, output, options, log, display, signals)
        training.save(output + TRAINING)
        _write(training, output, options, judge=not signals)
        if signals:
            return exit_code(signals)
        if log.failed:
            return CANNOT_WRITE
    short = options["samples"] is not None and state != "all lists seen"
    if short and options["quiet"]:
        say(f"warning: {output}: {state}, before all lists were seen")
    return STOPPED_EARLY if short else 0


def _training(output: str, options: JsonDict) -> SorterTraining:
    """A new training, or the one in the file; ends the command for what would be found out after the work."""
    import torch

    from apsvm.torch.checkpoint import CheckpointError
    from apsvm.torch.sorters.training import SorterSettings, SorterTraining

    state = output + TRAINING
    for path in (output, state, options["log"]):
        if path is not None:
            check_output(path)
    if options["log"] is not None and os.path.realpath(options["log"]) in map(os.path.realpath, (output, state)):
        raise click.UsageError("the log and the sorter cannot go to the same place")
    if options["threads"]:
        torch.set_num_threads(options["threads"])
    device = _device(options["device"])
    names = ("architecture", "length", "longest", "batch", "learning_rate", "halve_every", "seed")
    if not options["resume"]:
        if os.path.exists(state):
            raise click.UsageError(f"{state} is there: --resume goes on from it; remove it to begin anew")
        with _usage_errors():
            return SorterTraining(SorterSettings(**{name: options[name] for name in names}), device)
    with reading(state):
        try:
            training = SorterTraining.resumed(state, device)
        except CheckpointError as error:
            raise Failure(BAD_DATA, str(error)) from None
    for name in names:
        value = getattr(training.settings, name)
        if given_by_user(name) and options[name] != value:
            raise click.UsageError(f"{state} was begun with --{name.replace('_', '-')} {value}, not {options[name]}")
    return training


def _run(
    training: SorterTraining, output: str, options: JsonDict, log: Log, display: Display, signals: list[int]
) -> str:
    """Trains, and saves once a minute; why it stopped."""
    saved = time.monotonic()

    def show(progress: SorterProgress) -> None:
        nonlocal saved
        display.show(_line(training, progress))
        if time.monotonic() - saved >= SECONDS_A_SAVING:
            with writing(output + TRAINING):
                training.save(output + TRAINING)
            saved = time.monotonic()

    try:
        state = training.run(
            samples=options["samples"],
            time_limit=options["time_limit"],
            progress=show,
            log=log,
            should_stop=lambda: bool(signals),
        )
    except FloatingPointError as error:
        raise Failure(BAD_DATA, f"{training.settings.architecture}: {error}") from None
    except RuntimeError as error:  # as PyTorch says that there is not enough memory
        if "memory" in str(error):
            raise MemoryError from None
        raise
    if not options["quiet"]:
        say(f"{state}: {training.seen:,} lists in {training.steps:,} steps")
    return state


def _line(training: SorterTraining, progress: SorterProgress) -> Progress:
    columns = {
        "line": ">6d",
        "steps": ">9d",
        "lists": ">13,d",
        "L1": ">9.5f",
        "step length": ">12.3g",
        "seconds": ">9.1f",
    }
    values = (progress.number, progress.steps, progress.seen, progress.l1, progress.learning_rate, progress.seconds)
    return Progress(training.sorter.name, columns, dict(zip(columns, values, strict=True)))


def _write(training: SorterTraining, output: str, options: JsonDict, *, judge: bool) -> None:
    """The sorter, with its quality if there is time to look."""
    from apsvm.torch.checkpoint import write_checkpoint
    from apsvm.torch.sorters.quality import climb_caution, judge_sorter

    settings, header = training.settings, training.header()
    if judge:
        # Not freeze(): the training is the caller's.
        training.sorter.eval()
        quality = judge_sorter(training.sorter, settings.length, lists=JUDGED_ON, device=training.device)
        header = training.header(quality.l1, quality.climb)
        if not options["quiet"]:
            say(f"on {JUDGED_ON:,} lists of {settings.length}: L1 {quality.l1:.4f}, climb {quality.climb:.3f}")
    with writing(output):
        write_checkpoint(output, training.sorter, header)
    if not options["quiet"]:
        say(f"sorter written to {output}")
    if caution := climb_caution(header.climb):
        say(f"warning: {output}: {caution}")


@sorter.command(name="eval")
@click.argument("names", metavar="SORTER…", nargs=-1, required=True)
@click.option(
    "--length", "lengths", type=Several(click.IntRange(2, MOST_SCORES)), metavar="N,…",
    help=f"Scores of a list.  [default: {','.join(map(str, LENGTHS))}, or the one that the sorter takes]",
)  # fmt: skip
@click.option(
    "--samples", type=WholeNumber(1, 1e9), default=1000, show_default=True, help="Made lists that L1 is a mean over."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the lists.")
@click.option("--device", default="cpu", show_default=True, help="Where PyTorch computes.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON list.")
def evaluate(
    names: tuple[str, ...], lengths: tuple[int, ...] | None, samples: int, seed: int, device: str, as_json: bool
) -> None:
    """Judge sorters on made lists: by L1, all in all and for each kind of list, and by the climb.

    SORTER is a file of apsvm sorter train, neighbours (the one that apsvm comes with), handcrafted(10),
    handcrafted-raw(10) (the paper's) or laplace(10).

    L1 is the mean error of a rank, where the last one is 1. The climb is Spearman's correlation with random targets
    that 100 steps down the sorter's gradient reach on the scores themselves: a sorter may have a small L1 and a
    gradient that leads nowhere.
    """
    with torch_needed():
        from apsvm.torch.sorters import SorterError
        from apsvm.torch.sorters.quality import judge_sorter

        place = _device(device)
        sorters = {name: _loaded(name) for name in names}
    for name, one in sorters.items():
        if one.length is not None and lengths is not None and lengths != (one.length,):
            raise click.UsageError(f"{name} takes lists of {one.length} only")
        for length in lengths or ():
            try:
                one.check_length(length)
            except SorterError as error:
                raise click.UsageError(str(error)) from None
    results: list[tuple[str, SorterQuality]] = []
    for name, one in sorters.items():
        one.to(place)
        for length in lengths or ((one.length,) if one.length is not None else LENGTHS):
            results.append((name, judge_sorter(one, length, lists=samples, seed=seed, device=place)))
            if not as_json:
                _put_quality(*results[-1], heading=len(results) == 1, width=max(map(len, names)))
    if as_json:
        put(json.dumps([_quality_as_json(*result) for result in results], indent=1))


def _put_quality(name: str, quality: SorterQuality, *, heading: bool, width: int) -> None:
    kinds = quality.l1_by_kind
    if heading:
        columns = "".join(f"{kind:>{max(9, len(kind) + 2)}}" for kind in kinds)
        put(f"{'sorter':<{max(6, width)}} {'length':>7} {'L1':>8} {'climb':>7} {'ms/list':>9}  L1 of:{columns}")
    cells = "".join(f"{_figure(l1, '.4f'):>{max(9, len(kind) + 2)}}" for kind, l1 in kinds.items())
    put(
        f"{printable(name):<{max(6, width)}} {quality.length:>7} {_figure(quality.l1, '.4f'):>8} "
        f"{_figure(quality.climb, '.3f'):>7} {quality.milliseconds:>9.3f}        {cells}"
    )


def _figure(value: float, specification: str) -> str:
    return "-" if math.isnan(value) else format(value, specification)


def _quality_as_json(name: str, quality: SorterQuality) -> JsonDict:
    numbers: Mapping[str, float] = {"L1": quality.l1, "climb": quality.climb, "milliseconds": quality.milliseconds}
    return {
        "sorter": name,
        "length": quality.length,
        "lists": quality.lists,
        **{key: _or_null(value) for key, value in numbers.items()},
        "L1_by_kind": {kind: _or_null(value) for kind, value in quality.l1_by_kind.items()},
    }


def _or_null(value: float) -> float | None:
    return None if math.isnan(value) else value


@sorter.command()
@click.argument("file", metavar="FILE")
@click.option("--json", "as_json", is_flag=True, help="All that the file says, as one JSON object.")
def info(file: str, as_json: bool) -> None:
    """Print what a sorter's FILE says of it; neighbours is the one that apsvm comes with."""
    with torch_needed():
        from apsvm.torch.checkpoint import CheckpointError, find_checkpoint

        with reading(file):
            try:
                checkpoint = find_checkpoint(file)
            except CheckpointError as error:
                raise Failure(BAD_DATA, str(error)) from None
    if as_json:
        put(json.dumps(checkpoint.header.to_json(), indent=1, sort_keys=True))
        return
    parameters = sum(parameter.numel() for parameter in checkpoint.sorter.parameters())
    for name, text in _described(checkpoint.sorter, checkpoint.header, parameters):
        put(f"{name:<13}{printable(text)}")


def _described(sorter: Sorter, header: SorterHeader, parameters: int) -> Iterator[tuple[str, str]]:
    yield "sorter", sorter.name
    yield "parameters", f"{parameters:,}"
    bounds = sorter.lengths
    any_length = "lists of any length" if bounds[0] == 1 else f"lists of {bounds[0]} to {bounds[-1]:,} scores"
    yield "takes", any_length if header.length is None else f"lists of {header.length:,} scores"
    yield "trained on", f"{header.seen:,} lists of {_lengths_in_words(header)}, seed {header.seed}"
    yield "L1", _figure(header.l1, ".5f")
    yield "climb", _figure(header.climb, ".4f")
    yield "apsvm", header.version


def _lengths_in_words(header: SorterHeader) -> str:
    longest = "" if header.trained_longest is None else f" to {header.trained_longest:,}"
    return f"{header.trained_length:,}{longest} scores ({header.distribution})"


def _loaded(name: str) -> Sorter:
    from apsvm.torch.checkpoint import CheckpointError, load_sorter
    from apsvm.torch.sorters import SorterError

    with reading(name):
        try:
            return load_sorter(name)
        except CheckpointError as error:
            raise Failure(BAD_DATA, str(error)) from None
        except SorterError as error:
            raise click.UsageError(str(error)) from None


def _device(name: str) -> torch.device:
    """Where to compute; ends the command if it is not there."""
    from apsvm.torch.network import device_of
    from apsvm.trainers.settings import SettingsError

    try:
        return device_of(name)
    except SettingsError as error:
        raise click.UsageError(str(error)) from None


@contextmanager
def torch_needed() -> Iterator[None]:
    """Ends the command, naming the extra, where PyTorch or safetensors is missing."""
    try:
        from apsvm.torch.checkpoint import require_safetensors

        require_safetensors()
    except ImportError as error:
        raise Failure(MISSING, str(error)) from None
    yield


@contextmanager
def _usage_errors() -> Iterator[None]:
    from apsvm._support.registry import UnknownNameError
    from apsvm.torch.sorters import SorterError

    try:
        yield
    except (SorterError, UnknownNameError) as error:
        raise click.UsageError(str(error)) from None
