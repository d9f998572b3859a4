"""Trains the sorter that apsvm comes with, ``load_sorter("attention")``, and says how good it is.

    python scripts/dev/train_shipped_sorter.py [--output apsvm/torch/sorters/attention.safetensors] [--samples 160000]

Five minutes on one core. Made lists of 10 to 200 scores; one thread, so that the same version of PyTorch gives the same
file.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from apsvm.torch.checkpoint import SHIPPED, write_checkpoint
from apsvm.torch.sorters.quality import judge_sorter
from apsvm.torch.sorters.training import SorterProgress, SorterSettings, SorterTraining

FILE = Path(__file__).parents[2] / "apsvm" / "torch" / "sorters" / SHIPPED["attention"]
LENGTHS = (10, 30, 50, 100, 300, 1000)
#: What the file's header says is of lists of this length.
OF_HEADER = 100
HALVINGS = 7


def show(progress: SorterProgress) -> None:
    if progress.steps % 500 == 0:
        print(f"{progress.seen:>9,} lists, L1 {progress.l1:.4f}, {progress.seconds:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default=str(FILE))
    parser.add_argument("--samples", type=int, default=160_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    settings = SorterSettings(
        architecture="attention", length=10, longest=200, batch=32, learning_rate=2e-3,
        halve_every=options.samples // HALVINGS,
    )  # fmt: skip
    training = SorterTraining(settings)
    training.run(samples=options.samples, progress=show)
    sorter = training.sorter.freeze()
    print(f"\n{'L':>6} {'L1':>8} {'climb':>8} {'ms a list':>10}")
    of_header = (float("nan"), float("nan"))
    for length in LENGTHS:
        quality = judge_sorter(sorter, length, lists=2_000 if length < 1000 else 200)
        print(f"{length:>6} {quality.l1:>8.4f} {quality.climb:>8.3f} {quality.milliseconds:>10.3f}", flush=True)
        if length == OF_HEADER:
            of_header = (quality.l1, quality.climb)
    write_checkpoint(options.output, sorter, training.header(*of_header))
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
