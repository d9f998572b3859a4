"""``apsvm bench``: timings of this machine, for data of one's own or of a made size."""

from __future__ import annotations

from collections.abc import Iterable

import click

from apsvm._support.types import JsonDict
from apsvm.cli.options.parameters import LabelValue, Number
from apsvm.cli.options.training import check_output
from apsvm.cli.output.bar import Bar
from apsvm.cli.reading import how_to_read, read_model, read_rows, score_rows
from apsvm.cli.shared import put, reading, writing
from apsvm.data.read_options import ReadOptions


def _print(lines: Iterable[str]) -> None:
    with Bar("timing"):
        for line in lines:
            put(line)


@click.group()
def bench() -> None:
    """Measure oracles, training or reading, side by side with rivals in one run."""


@bench.command()
@click.option(
    "--positives", type=click.IntRange(1), multiple=True, default=(1000,), show_default=True,
    help="Made positives. May be given more than once.",
)  # fmt: skip
@click.option(
    "--negatives", type=click.IntRange(1), multiple=True, default=(1000, 10_000, 100_000, 1_000_000), show_default=True,
    help="Made negatives. May be given more than once.",
)  # fmt: skip
@click.option(
    "--shift", type=Number(), multiple=True, default=(1.0, 5.0), show_default=True,
    help="How far the positives' normal scores are shifted: 1 as early in a training, 5 as at its end.",
)  # fmt: skip
@click.option("--data", metavar="DATA", help="Instead of made scores: those of this file …")
@click.option("--model", metavar="MODEL", help="… under this model.")
@click.option("--threads", type=click.IntRange(1, 1024), default=1, show_default=True, help="Threads of apsvm.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the made scores.")
@click.option("--json", metavar="FILE", help="Write the timings too, for apsvm plot scaling; - for stdout, alone.")
@how_to_read
def oracle(
    positives: tuple[int, ...],
    negatives: tuple[int, ...],
    shift: tuple[float, ...],
    data: str | None,
    model: str | None,
    threads: int,
    seed: int,
    json: str | None,
    read: ReadOptions,
) -> None:
    """Milliseconds a call of every oracle for the AP loss, on the same scores."""
    if (data is None) != (model is None):
        raise click.UsageError("--data and --model go together")
    from itertools import product
    from json import dumps

    import numpy as np

    from apsvm._support.files import write_whole
    from apsvm.cli.benchmarks import Scores, normal_scores, oracle_table
    from apsvm.data.labels import recall

    if json is not None:
        check_output(json, data=data, model=model)
    show = _ignore if json == "-" else put
    timings: list[JsonDict] = []

    def time(queries: list[Scores], **about: float) -> None:
        timed: list[JsonDict] = []
        with Bar("timing"):
            for line in oracle_table(queries, threads=threads, timings=timed):
                show(line)
        timings.extend({**timing, **about} for timing in timed)

    if data is not None and model is not None:
        ranker = read_model(model)
        dataset, scores = score_rows(ranker, data, read)
        with reading(dataset.source):
            relevant = recall(dataset, ranker.header.labels).relevant
        time([(scores[relevant], scores[~relevant])])
    else:
        for distance in shift:
            show(f"normal scores, the positives' shifted by {distance:g}")
            rng = np.random.default_rng(seed)
            time([normal_scores(rng, *size, distance) for size in product(positives, negatives)], shift=distance)
    if json is not None:
        with writing(json):
            write_whole(json, (dumps({"timings": timings}, indent=1) + "\n").encode())


def _ignore(line: str) -> None:
    pass


@bench.command()
@click.argument("data", metavar="DATA")
@click.option("--positive-label", type=LabelValue(), help="The label that is positive.")
@click.option("--threads", type=click.IntRange(1, 1024), default=1, show_default=True, help="Threads of apsvm.")
@how_to_read
def train(data: str, positive_label: float | str | None, threads: int, read: ReadOptions) -> None:
    """AP-SVM against scikit-learn's LinearSVC and LogisticRegression, on two thirds of DATA's rows.

    Each at the C of its best AP on the other third; training time only.
    """
    import numpy as np
    from sklearn.model_selection import train_test_split
    from threadpoolctl import threadpool_limits

    from apsvm.cli.benchmarks import train_table

    dataset = read_rows(data, read)
    with reading(dataset.source):
        positive = None if positive_label is None else dataset.label_value(positive_label)
        relevant = dataset.positives(positive)
    if min(relevant.sum(), (~relevant).sum()) < 3:
        raise click.UsageError("a split needs at least three rows of each class")
    fit, test = train_test_split(np.arange(relevant.size), test_size=1 / 3, stratify=relevant, random_state=0)
    with threadpool_limits(threads):
        X = dataset.X
        _print(train_table(dataset.source, X[fit], relevant[fit], X[test], relevant[test], threads=threads))


@bench.command()
@click.argument("data", metavar="DATA", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--threads",
    type=click.IntRange(1, 1024),
    multiple=True,
    default=(1, 2),
    show_default=True,
    help="May be given more than once.",
)
def parse(data: str, threads: tuple[int, ...]) -> None:
    """Megabytes a second of reading DATA, a plain svmlight file counting features from 1, against scikit-learn."""
    from apsvm.cli.benchmarks import parse_table

    with reading(data):
        _print(parse_table(data, threads))
