"""Trains the sorter that apsvm comes with, ``load_sorter("neighbours")``, and says how good it is.

    python scripts/dev/train_shipped_sorter.py [--output apsvm/torch/sorters/neighbours.safetensors] [--samples 24000]

Two minutes of one core for the training, ten for the figures. Made lists of 3 to 200 scores; one thread, so that
the same version of PyTorch gives the same file. --work FOLDER keeps the training and, in sorter.jsonl, L1 and climb
after each tenth of it; a later run goes on from there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Generator, Tensor

from apsvm.torch.checkpoint import SHIPPED, write_checkpoint
from apsvm.torch.ranks import exact_ranks
from apsvm.torch.score_lists import Draw, seeded
from apsvm.torch.sorters import Sorter
from apsvm.torch.sorters.quality import judge_sorter
from apsvm.torch.sorters.training import SorterSettings, SorterTraining

FILE = Path(__file__).parents[2] / "apsvm" / "torch" / "sorters" / SHIPPED["neighbours"]
LENGTHS = (3, 5, 10, 30, 100, 300, 1000)
#: What the file's header says is of lists of this length.
OF_HEADER = 100
HALVINGS, PARTS = 6, 10


def _halves(generator: Generator, lists: int, length: int) -> Tensor:
    """N(±3, 1), either sign as likely."""
    signs = (torch.rand(lists, length, generator=generator) < 0.5).float() * 6 - 3
    return signs + torch.randn(lists, length, generator=generator)


def _tied(generator: Generator, lists: int, length: int) -> Tensor:
    """N(0, 1), rounded to halves."""
    return (2 * torch.randn(lists, length, generator=generator)).round() / 2


def _rectified(generator: Generator, lists: int, length: int) -> Tensor:
    """max(0, N(0, 1)): half of them are equal."""
    return torch.randn(lists, length, generator=generator).relu()


#: Lists by distribution, those of the last three no part of training.
OTHERS: Mapping[str, Draw] = {
    "uniform": lambda generator, *size: torch.rand(size, generator=generator),
    "normal": lambda generator, *size: torch.randn(size, generator=generator),
    "two halves": _halves,
    "tied": _tied,
    "rectified": _rectified,
}


def l1_of(sorter: Sorter, draw: Draw, length: int, lists: int) -> float:
    scores = draw(seeded("distribution", length), lists, length)
    with torch.no_grad():
        return float((sorter(scores) - exact_ranks(scores)).abs().mean())


def trained(samples: int, work: Path | None) -> SorterTraining:
    settings = SorterSettings(
        architecture="neighbours", length=3, longest=200, batch=32, learning_rate=5e-3, halve_every=samples // HALVINGS,
    )  # fmt: skip
    if work is None:
        training = SorterTraining(settings)
        training.run(samples=samples)
        return training
    work.mkdir(parents=True, exist_ok=True)
    path = work / "training"
    training = SorterTraining.resumed(path) if path.exists() else SorterTraining(settings)
    while training.seen < samples:
        training.run(samples=min(samples, training.seen + samples // PARTS))
        training.save(path)
        line = {"seen": training.seen}
        for length in (10, 100):
            quality = judge_sorter(training.sorter, length, lists=500)
            line |= {f"L1 at {length}": quality.l1, f"climb at {length}": quality.climb}
        with (work / "sorter.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    return training


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default=str(FILE))
    parser.add_argument("--samples", type=int, default=24_000)
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    training = trained(options.samples, options.work)
    sorter = training.sorter.freeze()
    of_header = judge_sorter(sorter, OF_HEADER, lists=10_000)
    write_checkpoint(options.output, sorter, training.header(of_header.l1, of_header.climb))
    print(f"wrote {options.output}, after {training.seen:,} lists")
    print(f"{'L':>6} {'L1':>8} {'climb':>8} {'ms a list':>10}", *(f"{name:>10}" for name in OTHERS))
    for length in LENGTHS:
        lists = min(2_000, 200_000 // length)
        quality = of_header if length == OF_HEADER else judge_sorter(sorter, length, lists=lists)
        others = [f"{l1_of(sorter, draw, length, lists):>10.4f}" for draw in OTHERS.values()]
        figures = f"{length:>6} {quality.l1:>8.4f} {quality.climb:>8.3f} {quality.milliseconds:>10.3f}"
        print(figures, *others, flush=True)


if __name__ == "__main__":
    main()
