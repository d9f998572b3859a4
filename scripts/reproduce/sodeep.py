"""Table 1 and Figures 4, 5 and 6 of Engilberge, Chevallier, Pérez and Cord, "SoDeep: a Sorting Deep net to learn
Ranking Loss Surrogates" (CVPR 2019), the paper's figures beside ours; stand-ins for Tables 2, 3 and 4, whose data are
not free.

    python scripts/reproduce/sodeep.py [--parts table-1,figure-4,…] [--seconds 60] [--output bench-output/sodeep]

Sorters are trained for --seconds of processor time each, on one thread (the paper: 4 · 10⁷ lists on a graphics card;
configs/sodeep-*.toml are its settings), so that the CNN's L1 is not the paper's: what is compared is the order, and
climb, which the paper does not report. The LSTM begins with parameters of ours that already rank, and its linear map
alone is trained; the paper's are random. Figure 4 compares depths trained for as long, and on as many lists. --quick
makes all of it in a minute, and its figures mean nothing.

    --train CONFIG FILE   trains one sorter as configs/sodeep-*.toml says, judges it and writes FILE, and nothing else;
                          on --device, of --samples lists where the configuration's are too many
    --sorters FILE …      of --train, for lists of 100: in place of the script's own of their architectures
    --regression FILE …   svmlight files with real targets for Table 2 [default: scikit-learn's diabetes]
    --coco FILE.npz       for Table 3, features of who has the data: train_images, train_captions, test_images,
                          test_captions, row by row; else the left and right halves of scikit-learn's digits
    --voc FILE.npz        for Table 4: train_features, train_labels (n, classes) of 0 and 1, test_features, test_labels;
                          else scikit-learn's digits as ten labels
"""

from __future__ import annotations

import argparse
import signal
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from experiments import machine, paired, table
from kept import Curves, Pieces, draw, tables_kept
from sklearn.datasets import load_diabetes, load_digits
from sodeep_tasks import Results, Split, figure_6, halved, table_2, table_3, table_4
from torch import Tensor

from apsvm import read_svmlight
from apsvm.torch import load_sorter, make_sorter
from apsvm.torch.checkpoint import read_checkpoint, write_checkpoint
from apsvm.torch.ranks import exact_ranks
from apsvm.torch.score_lists import seeded
from apsvm.torch.sorters import Sorter
from apsvm.torch.sorters.quality import judge_sorter
from apsvm.torch.sorters.training import SorterProgress, SorterSettings, SorterTraining

LENGTH = 100
#: Batch and first step length that suit a budget of a minute.
QUICK_SETTINGS = {"lstm": (32, 1e-5), "lstm-large": (32, 1e-5), "cnn": (32, 1e-3), "neighbours": (16, 5e-3)}
FAMILIES = ("cnn", "lstm", "neighbours")
PARTS_OF_BUDGET = 6
UNTRAINED = ("handcrafted(10)", "laplace(10)", "laplace(50)")
PAPER_L1 = {"handcrafted(10)": ".0350", "cnn": ".0120", "lstm": ".0033"}
DEPTHS = (2, 4, 6, 8, 10)
#: What the losses of the tables take, by what they are called there.
OF_TASKS = {"handcrafted": "handcrafted(10)", "Laplace": "laplace(10)", "neighbours": "neighbours"}
PARTS = ("table-1", "figure-4", "figure-5", "figure-6", "table-2", "table-3", "table-4")
PAPER = {
    "table-2": "memorability: squares 48.6, SoDeep LSTM 49.4, CNN 46.6, handcrafted 45.7, L1 46.2",
    "table-3": "COCO: triplets 69.8 91.9 96.6, 55.9 86.9 94.0; SoDeep 71.5 92.8 97.1, 56.2 87.0 94.3",
    "table-4": "VOC 2007: soft margin 93.2 (0.8 less), with SoDeep 94.0",
    "figure-6": "a curve: the LSTM sorter gets about the AP of the AP hinge",
}


@dataclass(frozen=True)
class Trained:
    """A sorter, the lists and processor seconds it took, and (seconds, mean L1 of the last batches) on the way; of one
    from a file no seconds."""

    sorter: Sorter
    seen: int
    seconds: float
    curve: Sequence[tuple[float, float]]


def train(architecture: str, seconds: float, lists: int | None = None) -> Trained:
    """A budget of processor time, or of lists; after each sixth of it the step length is halved."""
    batch, rate = QUICK_SETTINGS[architecture.partition("(")[0]]
    training = SorterTraining(SorterSettings(architecture=architecture, length=LENGTH, batch=batch, learning_rate=rate))
    curve: list[tuple[float, float]] = []
    began = time.process_time()

    def note(progress: SorterProgress) -> None:
        curve.append((time.process_time() - began, progress.l1))

    for part in range(PARTS_OF_BUDGET):
        share = (part + 1) / PARTS_OF_BUDGET
        samples = None if lists is None else round(share * lists)
        training.settings = replace(training.settings, learning_rate=rate * 0.5**part)
        training.run(samples=samples, progress=note, should_stop=partial(_is_past, began + share * seconds))
    return Trained(training.sorter.freeze(), training.seen, time.process_time() - began, curve)


def train_as_configured(options: argparse.Namespace) -> None:
    """The sorter of a configuration, judged on made lists and written; Ctrl-C ends its training."""
    config, output = options.train
    table = {name.replace("-", "_"): value for name, value in tomllib.loads(Path(config).read_text()).items()}
    of_config, judged_at = table.pop("samples"), table.pop("judged_at", table["length"])
    training = SorterTraining(SorterSettings(**table), options.device)
    stopped: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: stopped.append(number))
    print(f"{'steps':>9} {'lists':>13} {'L1':>9} {'seconds':>9}")

    def show(line: SorterProgress) -> None:
        print(f"{line.steps:>9} {line.seen:>13,} {line.l1:>9.5f} {line.seconds:>9.1f}", flush=True)

    state = training.run(samples=int(options.samples or of_config), progress=show, should_stop=lambda: bool(stopped))
    climb_steps = 3 if options.quick else None
    sorter = training.sorter.eval()
    quality = judge_sorter(sorter, judged_at, lists=options.lists, device=options.device, climb_steps=climb_steps)
    write_checkpoint(output, sorter, training.header(quality.l1, quality.climb))
    print(f"{state}: L1 {quality.l1:.4f}, climb {quality.climb:.3f} on lists of {judged_at}; written to {output}")


def _is_past(end: float) -> bool:
    return time.process_time() >= end


def quality_row(
    name: str, sorter: Sorter, seen: int, seconds: float, options: argparse.Namespace, pieces: Pieces
) -> list[str]:
    climb_steps = 3 if options.quick else None
    work = partial(judge_sorter, sorter, LENGTH, lists=options.lists, climb_steps=climb_steps)
    quality = pieces(f"{name} judged", work)
    parameters = sum(parameter.numel() for parameter in sorter.parameters())
    return [
        name, f"{parameters:,}", f"{seen:,}", f"{seconds:.0f}", f"{quality.l1:.4f}", f"{quality.climb:.3f}",
        f"{quality.milliseconds:.3f}", PAPER_L1.get(name, "-"),
    ]  # fmt: skip


def qualities(trained: Mapping[str, Trained], options: argparse.Namespace, pieces: Pieces) -> str:
    rows = [quality_row(name, one.sorter, one.seen, one.seconds, options, pieces) for name, one in trained.items()]
    heading = ["sorter", "parameters", "lists seen", "seconds", "L1", "climb", "ms a list", "the paper's L1"]
    return table(heading, rows)


def table_1(trained: Mapping[str, Trained], options: argparse.Namespace, pieces: Pieces) -> str:
    fixed = {name: Trained(make_sorter(name), 0, 0.0, []) for name in UNTRAINED}
    shipped = {"neighbours, as shipped": Trained(load_sorter("neighbours"), 0, 0.0, [])}
    return f"{qualities({**fixed, **trained, **shipped}, options, pieces)}\n\n{curves(trained)}"


def curves(trained: Mapping[str, Trained]) -> str:
    """L1 of the batches around each fifth of the budget."""
    fifths = range(1, 6)
    rows = []
    for name, one in trained.items():
        parts = np.array_split(np.array(one.curve), len(fifths)) if len(one.curve) >= len(fifths) else []
        rows.append([name, *(f"{part[-3:, 1].mean():.4f}" for part in parts), *["-"] * (len(fifths) - len(parts))])
    return table(["L1 in training, after", *(f"{at}/5 of it" for at in fifths)], rows)


def figure_4(options: argparse.Namespace, pieces: Pieces) -> tuple[str, dict[str, Trained]]:
    """Sorters trained for equal time, and on as many lists as the one that saw the fewest."""
    names = [f"cnn({depth})" for depth in DEPTHS]
    as_long = {name: pieces(f"{name} trained", partial(train, name, options.seconds / 2)) for name in names}
    lists = min(one.seen for one in as_long.values())
    as_many = {
        f"{name} on {lists} lists": pieces(f"{name} trained on {lists} lists", partial(train, name, np.inf, lists))
        for name in names
    }
    return qualities({**as_long, **as_many}, options, pieces), as_long


def figure_5(sorters: Mapping[str, Callable[[Tensor], Tensor]]) -> tuple[str, Curves]:
    """The rank of the first of 100 uniform scores as it goes from −1 to 1 by .001."""
    y_1 = torch.linspace(-1, 1, 2001)
    scores = (2 * torch.rand(1, LENGTH, generator=seeded("figure 5")) - 1).repeat(len(y_1), 1)
    scores[:, 0] = y_1
    exact = exact_ranks(scores)[:, 0]
    lines, rows = {"exact": (y_1.tolist(), exact.tolist())}, []
    for name, sorter in sorters.items():
        with torch.no_grad():
            ranks = torch.cat([sorter(part)[:, 0] for part in scores.split(500)])
        lines[name] = (y_1.tolist(), ranks.tolist())
        error, rises = (ranks - exact).abs(), float((ranks.diff() > 1e-6).double().mean())
        rows.append([name, f"{error.mean():.4f}", f"{error.max():.4f}", f"{100 * rises:.1f}"])
    heading = ["sorter", "mean error", "largest", "% of the way in the wrong direction"]
    return table(heading, rows), Curves(lines, ("first score", "its normalised rank"))


def summary(results: Sequence[Results], what: str) -> str:
    """Means over the seeds, and the difference from the first, paired over them."""
    values = {name: np.array([of_seed[name] for of_seed in results]) for name in results[0]}
    first = next(iter(values.values()))
    rows = [[name, f"{of_it.mean():.2f}", *paired(of_it - first)] for name, of_it in values.items()]
    return table([what, "mean", "minus the first", "wins"], rows)


def regressions(paths: Sequence[str]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    if not paths:
        return {"diabetes": load_diabetes(return_X_y=True)}
    sets = {Path(path).stem: read_svmlight(path) for path in paths}
    return {name: (data.X.toarray(), data.relevance) for name, data in sets.items()}


def of_archive(path: str, names: Sequence[str]) -> list[Split]:
    with np.load(path, allow_pickle=False) as archive:
        return [Split(*(torch.tensor(archive[name]).float() for name in names))]


def two_views(path: str | None, seeds: int) -> list[Split]:
    if path is not None:
        return of_archive(path, ["train_images", "train_captions", "test_images", "test_captions"])
    images = load_digits().images
    halves = [half.reshape(len(images), -1) for half in (images[:, :, :4], images[:, :, 4:])]
    lefts, rights = ([halved(half, np.arange(len(half)), seed) for seed in range(seeds)] for half in halves)
    return [Split(left.X, right.X, left.X_test, right.X_test) for left, right in zip(lefts, rights, strict=True)]


def labelled(path: str | None, seeds: int) -> list[Split]:
    if path is not None:
        return of_archive(path, ["train_features", "train_labels", "test_features", "test_labels"])
    X, y = load_digits(return_X_y=True)
    return [halved(X, y[:, None] == np.arange(10), seed) for seed in range(seeds)]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time, each sorter")
    parser.add_argument("--lists", type=int, default=2000, help="that L1 is a mean over; the paper: 10,000")
    parser.add_argument("--steps", type=int, default=400, help="of each net's training")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--train", nargs=2, metavar=("CONFIG", "FILE"))
    parser.add_argument("--device", default="cpu", help="where --train computes: cpu, cuda, cuda:1, mps")
    parser.add_argument("--samples", type=int, help="lists that --train sees [default: the configuration's]")
    parser.add_argument("--sorters", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--regression", nargs="*", default=[])
    parser.add_argument("--coco")
    parser.add_argument("--voc")
    parser.add_argument("--output", type=Path, default=Path("bench-output/sodeep"))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    options.parts = options.parts.split(",")
    if set(options.parts) - set(PARTS):
        parser.error(f"parts are {', '.join(PARTS)}")
    for path in (*options.sorters, *options.regression, *filter(None, (options.coco, options.voc))):
        if not Path(path).is_file():
            instead = "sorters are trained" if path in options.sorters else "scikit-learn's sets are taken"
            parser.error(f"no such file: {path}; without --sorters, --regression, --coco and --voc {instead}")
    if options.quick:
        options.seconds, options.lists, options.steps, options.seeds = 0.2, 20, 5, 2
    return options


def families(options: argparse.Namespace, pieces: Pieces) -> dict[str, Trained]:
    """A trained sorter of each, and those of the files."""
    of_files = {}
    for path in options.sorters:
        read = read_checkpoint(path)
        of_files[read.header.architecture] = Trained(read.sorter, read.header.seen, 0.0, [])
    names = [name for name in FAMILIES if name not in of_files]
    return {name: pieces(f"{name} trained", partial(train, name, options.seconds)) for name in names} | of_files


def sorter_parts(options: argparse.Namespace, pieces: Pieces) -> None:
    """Table 1 and the figures of the sorters themselves, and Figure 6, which trains a net by them."""
    needed = {"table-1", "figure-5", "figure-6"} & set(options.parts)
    trained = families(options, pieces) if needed else {}
    if "table-1" in options.parts:
        print(f"\nTable 1: sorters of lists of {LENGTH}\n\n{table_1(trained, options, pieces)}", flush=True)
    if "figure-4" in options.parts:
        text, by_depth = figure_4(options, pieces)
        print(f"\nFigure 4: the depth of the CNN; the paper's levels off at 8\n\n{text}", flush=True)
        lines = {name: tuple(zip(*one.curve, strict=True)) for name, one in by_depth.items() if one.curve}
        save(options, "figure-4", Curves(lines, ("seconds", "L1 of a batch"), logarithmic="y"))
    of_figures: dict[str, Callable[[Tensor], Tensor]] = {name: one.sorter for name, one in trained.items()}
    if "figure-5" in options.parts:
        text, picture = figure_5({**{name: make_sorter(name) for name in UNTRAINED[:2]}, **of_figures})
        print(f"\nFigure 5: the rank of one score as it rises\n\n{text}", flush=True)
        save(options, "figure-5", picture)
    if "figure-6" in options.parts:
        sorters = {"handcrafted": make_sorter("handcrafted(10)"), "Laplace": make_sorter("laplace(10)"), **of_figures}
        results = [
            pieces(f"figure 6, seed {seed}", partial(figure_6, sorters, seed, options.steps, LENGTH))
            for seed in range(options.seeds)
        ]
        print(f"\nFigure 6: AP on made rows; the paper: {PAPER['figure-6']}\n\n{summary(results, 'test AP, %')}")


def save(options: argparse.Namespace, name: str, picture: Curves) -> None:
    formats = ("svg",) if options.quick else ("png", "svg")
    draw(lambda: [picture.save(options.output / f"{name}.{format}") for format in formats])


def main() -> None:
    options = arguments()
    if options.train:
        torch.set_num_threads(1)
        train_as_configured(options)
        return
    with tables_kept(options.output):
        measure(options)


def measure(options: argparse.Namespace) -> None:
    """All tables, printed, and what each part has to draw."""
    torch.set_num_threads(1)
    print(f"{machine()}, PyTorch {torch.__version__}")
    pieces = Pieces(options)
    sorter_parts(options, pieces)
    if "table-2" in options.parts:
        print(f"\nA stand-in for Table 2. The paper's, {PAPER['table-2']}")
        for name, (X, y) in regressions(options.regression).items():
            results = [
                pieces(f"table 2, {name}, seed {seed}", partial(table_2, X, y, OF_TASKS, seed, options.steps))
                for seed in range(options.seeds)
            ]
            print(f"\n{summary(results, f'{name}: Spearman, %')}", flush=True)
    if "table-3" in options.parts:
        data = "COCO" if options.coco else "A stand-in for Table 3: the halves of digits"
        print(f"\n{data}. The paper's, {PAPER['table-3']}\n")
        found = [
            pieces(f"table 3, seed {seed}", partial(table_3, views, OF_TASKS, seed, options.steps))
            for seed, views in enumerate(two_views(options.coco, options.seeds))
        ]
        heading = ["recall, %", *(f"{way} R@{k}" for way in ("→", "←") for k in (1, 5, 10))]
        means = {name: np.mean([of_seed[name] for of_seed in found], axis=0) for name in found[0]}
        rows = [[name, *(f"{value:.1f}" for value in values)] for name, values in means.items()]
        print(table(heading, rows), flush=True)
    if "table-4" in options.parts:
        data = "VOC" if options.voc else "A stand-in for Table 4: digits as ten labels"
        print(f"\n{data}. The paper's, {PAPER['table-4']}\n")
        results = [
            pieces(f"table 4, seed {seed}", partial(table_4, split, OF_TASKS, seed, options.steps))
            for seed, split in enumerate(labelled(options.voc, options.seeds))
        ]
        print(summary(results, "test mAP, %"))


if __name__ == "__main__":
    main()
