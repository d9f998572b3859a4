"""A study of the losses that networks are trained on: test average precision, from scratch and after cross-entropy.

    python scripts/study/nets.py DATA [DATA …] [--splits 5] [--epochs 60] [--hidden 32] [--rows 4000] [--json FILE]
    python scripts/study/nets.py --rare FOLDER [--splits 5] [--steps 8000] [--hidden 32]

DATA are svmlight files, plain or gzipped, or DATA@LABEL: that label against all others. In each split two thirds of the
rows, drawn with their share of positives, train (at most ROWS of them), the rest test. All networks have one budget:
the same layers, EPOCHS passes in batches of 256 of which the best on a held-out fifth is kept, the same seed; "ap" is
trained on its hinge from scratch, "bce, ap" on cross-entropy for the first half. Beside them the linear APSVMClassifier
of the same rows, standardised, with its default settings, and gradient boosting: LightGBM where it is installed, else
scikit-learn's, each with its defaults.

Printed: the mean over the splits by set and method, and over the sets each method's mean rank, its mean difference from
"bce", and how many splits and sets it won against it (a set by the mean of its splits). FILE, lines of JSON, keeps the
results: what it has is not done again.

--rare: many rows, of which very few are positive: Xtrain.npy, ytrain.npy, Xtest.npy and ytest.npy of FOLDER. All
networks have the same layers and STEPS batches of 1,024 rows, Adam at .003, and at .001 for the second half of those
that change their loss or batches, which begins from the best network of the first. The best by AP on a fifth of the
training rows, held out and looked at each 500 batches, is kept. Printed: AP and P@100 of the test rows as mean and
standard error over the seeds, the middle one of the batches after which the best was found, and processor seconds.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata, wilcoxon
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits
from torch import Tensor

from apsvm import APSVMClassifier, read_svmlight
from apsvm.torch import APHingeLoss, RankingRampLoss, RankNetClassifier, SmoothAPLoss, StratifiedBatchSampler

#: Ranking losses, each trained from scratch and after cross-entropy.
LOSSES = ("ap", "ramp", "direct", "smooth-ap", "blackbox-ap")
REFERENCE = "bce"

#: Training rows, their labels, test rows, the split's number → scores of the test rows.
Method = Callable[[NDArray[Any], NDArray[np.bool_], NDArray[Any], int], NDArray[np.float64]]
#: By set, method and split: the test average precision, and the seconds that it took.
Results = dict[tuple[str, str, int], tuple[float, float]]


def net(loss: str, bce_epochs: int | None, options: argparse.Namespace) -> Method:
    def scores(X: NDArray[Any], relevant: NDArray[np.bool_], X_test: NDArray[Any], split: int) -> NDArray[np.float64]:
        model = RankNetClassifier(
            hidden=tuple(options.hidden),
            loss=loss,
            epochs=options.epochs,
            bce_epochs=bce_epochs,
            patience=options.epochs,
            random_state=split,
        )
        return model.fit(X, relevant).decision_function(X_test)

    return scores


def linear(X: NDArray[Any], relevant: NDArray[np.bool_], X_test: NDArray[Any], split: int) -> NDArray[np.float64]:
    scaler = StandardScaler().fit(X)
    model = APSVMClassifier().fit(scaler.transform(X), relevant)
    return model.decision_function(scaler.transform(X_test))  # type: ignore[no-any-return]


def boosting(X: NDArray[Any], relevant: NDArray[np.bool_], X_test: NDArray[Any], split: int) -> NDArray[np.float64]:
    if find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        model = LGBMClassifier(random_state=split, n_jobs=1, verbose=-1)
    else:
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(random_state=split)
    return model.fit(X, relevant).predict_proba(X_test)[:, 1]  # type: ignore[no-any-return]


def methods(options: argparse.Namespace) -> dict[str, Method]:
    """By name, in the order of the table."""
    nets: dict[str, Method] = {REFERENCE: net("bce", None, options)}
    for loss in LOSSES:
        nets[loss] = net(loss, 0, options)
        nets[f"bce, {loss}"] = net(loss, options.epochs // 2, options)
    return {"linear": linear, **nets, "boosting": boosting}


RARE_BATCH = 1024
LOOK_EACH = 500  # batches


def focal(scores: Tensor, target: Tensor) -> Tensor:
    """Lin et al. (2017), γ = 2, α = 1/4, their values."""
    bce = torch.nn.functional.binary_cross_entropy_with_logits(scores, target, reduction="none")
    return ((1 - torch.exp(-bce)) ** 2 * torch.where(target > 0, 0.25, 0.75) * bce).mean()


BCE = torch.nn.BCEWithLogitsLoss()
#: By name, the losses of the halves of a training, with the positives' share of their batches; None: random batches.
RARE: dict[str, list[tuple[Callable[[Tensor, Tensor], Tensor], float | None]]] = {
    "bce": [(BCE, None)],
    "focal": [(focal, None)],
    "bce, balanced batches": [(BCE, 0.5)],
    "bce, then balanced batches": [(BCE, None), (BCE, 0.5)],
    "bce, then AP hinge": [(BCE, None), (APHingeLoss(), 1 / 32)],
    "bce, then AP ramp": [(BCE, None), (RankingRampLoss(), 1 / 32)],
    "bce, then Smooth-AP": [(BCE, None), (SmoothAPLoss(), 1 / 32)],
    "Smooth-AP": [(SmoothAPLoss(), 1 / 32)],
}


def batches_of(target: Tensor, share: float | None, steps: int, generator: torch.Generator) -> Iterator[Tensor]:
    while steps > 0:
        if share is None:
            epoch: Iterable[Tensor] = torch.randperm(target.numel(), generator=generator).split(RARE_BATCH)
        else:
            epoch = map(torch.tensor, StratifiedBatchSampler(target, RARE_BATCH, share=share, generator=generator))
        for rows in islice(epoch, steps):
            steps -= 1
            yield rows


def rare(options: argparse.Namespace) -> None:
    folder = Path(options.rare)
    X, y, X_test, y_test = (
        torch.from_numpy(np.load(folder / f"{part}{half}.npy").astype(np.float32))
        for half in ("train", "test")
        for part in ("X", "y")
    )
    mean, deviation = X.mean(0), X.std(0)
    X, X_test = (X - mean) / deviation, (X_test - mean) / deviation
    print(
        f"{len(y)} rows, {int(y.sum())} positives; test on {len(y_test)}, {int(y_test.sum())}; {options.splits} seeds"
    )
    print("| loss | AP | P@100 | best after | s |\n|---|---|---|---|---|")
    for name, stages in RARE.items():
        results, ends, began = [], [], time.process_time()
        for seed in range(options.splits):
            splitter = StratifiedShuffleSplit(1, test_size=0.2, random_state=seed)
            ((fit, held_out),) = splitter.split(np.zeros(len(y)), y.numpy())
            network, end = best_network(stages, X[fit], y[fit], X[held_out], y[held_out], options, seed)
            scores = scores_of(network, X_test)
            top = y_test[scores.topk(100).indices].mean().item()
            results.append((average_precision_score(y_test.numpy(), scores.numpy()), top))
            ends.append(end)
        seconds = (time.process_time() - began) / options.splits
        error = np.std(results, axis=0, ddof=1) / np.sqrt(options.splits) if options.splits > 1 else np.zeros(2)
        cells = [f"{value:.4f} ± {e:.4f}" for value, e in zip(np.mean(results, axis=0), error, strict=True)]
        print(f"| {name} | {cells[0]} | {cells[1]} | {np.median(ends):.0f} | {seconds:.0f} |", flush=True)


@torch.no_grad()
def scores_of(network: torch.nn.Module, X: Tensor) -> Tensor:
    return network(X).squeeze(1)  # type: ignore[no-any-return]


def best_network(
    stages: Sequence[tuple[Callable[[Tensor, Tensor], Tensor], float | None]],
    X: Tensor,
    y: Tensor,
    X_held: Tensor,
    y_held: Tensor,
    options: argparse.Namespace,
    seed: int,
) -> tuple[torch.nn.Module, int]:
    """The network of the best AP on what is held out, and the batches after which it was."""
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    sizes = [X.shape[1], *options.hidden]
    layers = [part for a, b in pairwise(sizes) for part in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    network = torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], 1))
    best, best_value, end, done = copy.deepcopy(network.state_dict()), -1.0, 0, 0
    for stage, (loss, share) in enumerate(stages):
        network.load_state_dict(best)
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-3 if stage else 3e-3)
        for rows in batches_of(y, share, options.steps // len(stages), generator):
            optimizer.zero_grad()
            loss(network(X[rows]).squeeze(1), y[rows]).backward()
            optimizer.step()
            done += 1
            if done % LOOK_EACH == 0 or done == options.steps:
                value = average_precision_score(y_held.numpy(), scores_of(network, X_held).numpy())
                if value > best_value:
                    best, best_value, end = copy.deepcopy(network.state_dict()), value, done
    network.load_state_dict(best)
    return network, end


def read(name: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Dense rows, and which are positive: the label after @, else those above 0."""
    path, _, label = name.partition("@")
    dataset = read_svmlight(path)
    relevant = dataset.relevance == float(label) if label else dataset.relevance > 0
    return dataset.X.toarray(), relevant


def measure(options: argparse.Namespace) -> Results:
    """What FILE lacks is done, split by split, and added to it."""
    results: Results = {}
    if options.json and Path(options.json).exists():
        for line in Path(options.json).read_text().splitlines():
            one = json.loads(line)
            results[one["set"], one["method"], one["split"]] = one["ap"], one["seconds"]
    splits = StratifiedShuffleSplit(options.splits, test_size=1 / 3, random_state=0)
    for data in options.data:
        X, relevant = read(data)
        title = Path(data).name.removesuffix(".svm")
        for split, (training, test) in enumerate(splits.split(X, relevant)):
            kept = training[: options.rows]  # in random order
            for name, scores in methods(options).items():
                if (title, name, split) in results:
                    continue
                began = time.perf_counter()
                value = average_precision_score(relevant[test], scores(X[kept], relevant[kept], X[test], split))
                results[title, name, split] = float(value), time.perf_counter() - began
                if options.json:
                    line = {"set": title, "method": name, "split": split, "ap": float(value)}
                    with open(options.json, "a") as stream:
                        print(json.dumps({**line, "seconds": results[title, name, split][1]}), file=stream)
            print(f"{title}: split {split + 1} of {options.splits}", file=sys.stderr)
    return results


def print_table(results: Results, names: Sequence[str], options: argparse.Namespace) -> None:
    """See the module."""
    sets = list(dict.fromkeys(title for title, _, _ in results))
    values = np.array([[[results[s, m, k][0] for k in range(options.splits)] for m in names] for s in sets])
    means = values.mean(axis=2)
    width = max(map(len, [*sets, "mean rank"])) + 1
    print(" " * width + "".join(f"{name.replace('bce, ', '+'):>12}" for name in names))
    for title, row in zip(sets, means, strict=True):
        print(f"{title:<{width}}" + "".join(f"{value:12.4f}" for value in row))
    reference = list(names).index(REFERENCE)
    ahead = means - means[:, [reference]]
    each = values - values[:, [reference]]
    lines: Mapping[str, Sequence[str]] = {
        "mean rank": [f"{rank:.2f}" for rank in rankdata(-means, axis=1).mean(axis=0)],
        "- bce": [f"{value:+.4f}" for value in ahead.mean(axis=0)],
        "sets won": [f"{(one > 0).sum()}/{len(sets)}" for one in ahead.T],
        "splits won": [f"{(each[:, at] > 0).sum()}/{each[:, at].size}" for at in range(len(names))],
        "Wilcoxon p": [f"{wilcoxon(one).pvalue:.3f}" if one.any() else "" for one in ahead.T],
        "seconds": [f"{np.mean([t for (_, m, _), (_, t) in results.items() if m == n]):.2f}" for n in names],
    }
    print()
    for what, row in lines.items():
        print(f"{what:<{width}}" + "".join(f"{value:>12}" for value in row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", metavar="DATA")
    parser.add_argument("--rare", metavar="FOLDER")
    parser.add_argument("--steps", type=int, default=8000, help="batches of a training with --rare")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--hidden", type=int, nargs="+", default=[32])
    parser.add_argument("--rows", type=int, default=4000, help="training rows of a split, at most")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if options.rare:
        rare(options)
        return
    if not options.data:
        parser.error("give DATA, or --rare FOLDER")
    with threadpool_limits(1):
        results = measure(options)
    print_table(results, list(methods(options)), options)


if __name__ == "__main__":
    main()
