"""The repository's benchmark of ``apsvm.torch``: forward and backward of each loss, in multiples of ``torch.sort`` of
the same scores.

    python scripts/bench/torch_losses.py [--threads 1] [--most 1000000] [--rounds 7]

All losses of a size take turns, round by round, and each figure is the fastest of its rounds in processor time (in
wall time with several threads): a neighbour who is busy for a while makes no loss look slower than another. Beside them
stand a sort, binary cross-entropy, Smooth-AP with the logistic kernel, the blackbox loss and a reference that compares
all pairs, where their time and memory are still to be had. 10 % of the rows are positive, 5 % of a million.

Memory is the peak of a process that runs the loss at 10,000 rows, minus that of one that runs binary cross-entropy
(Linux only).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from apsvm.torch import APHingeLoss, BlackboxAPLoss, DirectLoss, NDCGHingeLoss, RankingRampLoss, SmoothAPLoss

Loss = Callable[[Tensor, Tensor], Tensor]

LOSSES: dict[str, Loss] = {
    "AP hinge": APHingeLoss(),
    "NDCG hinge": NDCGHingeLoss(),
    "AP ramp": RankingRampLoss(),
    "direct loss": DirectLoss(),
    "Smooth-AP, Laplace": SmoothAPLoss(),
    "Smooth-AP, logistic": SmoothAPLoss(kernel="logistic"),
    "blackbox AP": BlackboxAPLoss(),
    "binary cross-entropy": lambda scores, target: nn.functional.binary_cross_entropy_with_logits(
        scores, target.to(scores.dtype)
    ),
    "all pairs, O(n²)": lambda scores, target: smooth_ap_of_all_pairs(scores, target),
}
#: Up to how many rows a loss is measured whose time or memory grows faster than n log n.
MOST = {"Smooth-AP, logistic": 10_000, "all pairs, O(n²)": 1000}
SIZES = (1000, 10_000, 100_000, 1_000_000)
BATCH = (64, 256)


def smooth_ap_of_all_pairs(scores: Tensor, target: Tensor) -> Tensor:
    """Smooth-AP as it is usually written: a matrix of all pairs."""
    shares = torch.sigmoid(scores - scores.unsqueeze(1))
    everywhere, among = 0.5 + shares.sum(1), 0.5 + (shares * target).sum(1)
    return 1 - (among / everywhere)[target].mean()


def made(shape: tuple[int, ...], share: float) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    target = torch.rand(shape, generator=generator) < share
    scores = torch.randn(shape, generator=generator) + target
    return scores.requires_grad_(), target


def both_ways(loss: Loss, scores: Tensor, target: Tensor) -> Callable[[], None]:
    def run() -> None:
        scores.grad = None
        loss(scores, target).backward()

    return run


def milliseconds(runs: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], int]) -> dict[str, float]:
    """The fastest of the rounds, in which all take turns; short ones are repeated within a turn."""
    repeats = {}
    for name, run in runs.items():
        run()
        begun_at = clock()
        run()
        repeats[name] = max(1, min(200, int(20e6 / max(1, clock() - begun_at))))
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            begun_at = clock()
            for _ in range(repeats[name]):
                run()
            best[name] = min(best[name], (clock() - begun_at) / repeats[name] / 1e6)
    return best


def time_sizes(most: int, rounds: int, clock: Callable[[], int]) -> None:
    results: dict[int, dict[str, float]] = {}
    sizes = [n for n in SIZES if n <= most]
    for n in sizes:
        scores, target = made((n,), 0.1 if n < 1_000_000 else 0.05)
        still = scores.detach()
        runs: dict[str, Callable[[], object]] = {"torch.sort": lambda still=still: torch.sort(still)}
        runs |= {
            name: both_ways(loss, scores, target) for name, loss in LOSSES.items() if n <= MOST.get(name, SIZES[-1])
        }
        results[n] = milliseconds(runs, rounds if n < 1_000_000 else min(rounds, 3), clock)
    print("forward and backward, in multiples of torch.sort")
    print(f"{'':<22}" + "".join(f"{n:>20,}" for n in sizes))
    print(f"{'torch.sort, ms':<22}" + "".join(f"{results[n]['torch.sort']:>20.3f}" for n in sizes))
    for name in LOSSES:
        cells = []
        for n in sizes:
            if name not in results[n]:
                cells.append("-")
                continue
            ratio = results[n][name] / results[n]["torch.sort"]
            cells.append(f"{ratio:.2f}")
        print(f"{name:<22}" + "".join(f"{cell:>20}" for cell in cells))


def time_batch(rounds: int, clock: Callable[[], int]) -> None:
    scores, target = made(BATCH, 0.1)
    names = [name for name in LOSSES if not name.startswith(("all pairs", "binary"))]
    best = milliseconds({name: both_ways(LOSSES[name], scores, target) for name in names}, rounds, clock)
    print(f"\n{BATCH[0]} lists of {BATCH[1]} rows, milliseconds")
    for name in names:
        print(f"{name:<22}{best[name]:>10.2f}")


def peak_of(name: str) -> float:
    """Megabytes, of a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--peak-of", name], capture_output=True, text=True, check=True)
    return float(done.stdout)


def print_peak(name: str) -> None:
    torch.set_num_threads(1)
    scores, target = made((10_000,), 0.1)
    few, of_few = made((500,), 0.1)
    both_ways(LOSSES[name], few, of_few)()
    both_ways(LOSSES[name], scores, target)()
    # Not ru_maxrss, which begins with what the parent had.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(int(status["VmHWM"].split()[0]) / 1024)


def memory() -> None:
    base = peak_of("binary cross-entropy")
    print("\nmemory at 10,000 rows above binary cross-entropy, megabytes")
    for name in LOSSES:
        if MOST.get(name, SIZES[-1]) >= 10_000 and name != "binary cross-entropy":
            extra = peak_of(name) - base
            print(f"{name:<22}{extra:>10.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1, help="threads of all that runs; 1 by default")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="rows of the longest list")
    parser.add_argument("--rounds", type=int, default=7, help="how often each has its turn")
    parser.add_argument("--peak-of", choices=LOSSES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak_of:
        print_peak(options.peak_of)
        return
    torch.set_num_threads(options.threads)
    clock = time.process_time_ns if options.threads == 1 else time.perf_counter_ns
    print(f"PyTorch {torch.__version__}, {options.threads} thread(s), float32 scores")
    time_sizes(options.most, options.rounds, clock)
    time_batch(options.rounds, clock)
    memory()


if __name__ == "__main__":
    main()
