"""Layer-wise training of networks beside what it begins with and beside linear rankers: test AP over splits.

    python scripts/study/layer_wise.py DATA... [--splits 5] [--hidden 16] [--multiples 1,0.1,0.01]

Of each svmlight file 40 % of the rows are kept for the test, by class; a quarter of the others (15 % of all) is what
passes end by, and what C is chosen by, of ``--multiples`` of the default, as ``apsvm train --layer-wise`` does it. The
logistic regression, the linear AP-SVM (its defaults) and the network of the log loss are trained on the same 60 % (the
network on the 45 % that layer-wise training begins with). Seconds are CPU time, the log loss's network apart.

Seen (16 units; mean test AP):

                 LR    AP-SVM   log loss's network   layer-wise   s, log loss   s, layer-wise
    mammography  .611   .642          .602              .697         1.0            2.6
    sick         .686   .713          .745              .757         1.4             .3
    satimage-2   .902   .903          .888              .910          .6             .2
    pendigits    .957   .971          .984              .984          .9             .2

On mammography it is better in each of the five splits; elsewhere the network of the log loss is often kept, as no pass
is better on the rows held out, of which 11 (satimage-2) to 39 (mammography) are positive.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from apsvm import APSVMClassifier, read_svmlight
from apsvm.data.labels import of_relevance
from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.layer_wise import train_layer_wise
from apsvm.trainers.structured_svm.net_problem import NetProblem, log_loss_net
from apsvm.trainers.structured_svm.networks import DEFAULT_C, hidden_layers
from apsvm.trainers.structured_svm.settings import StructuredSettings

COLUMNS = ("LR", "AP-SVM", "log loss's network", "layer-wise, AP", "s, log loss", "s, layer-wise", "passes")


def of_split(X: np.ndarray, relevant: np.ndarray, split: int, hidden: Sequence[int], C: Sequence[float]) -> list[float]:
    """A value for each of ``COLUMNS``."""
    train, test = train_test_split(np.arange(relevant.size), test_size=0.4, random_state=split, stratify=relevant)
    data = TrainingSet(Rows(X[train]), of_relevance(relevant[train]))
    scaler = StandardScaler().fit(X[train])
    linear = LogisticRegression(max_iter=5000).fit(scaler.transform(X[train]), relevant[train])
    svm = APSVMClassifier().fit(X[train], relevant[train])
    settings, began = StructuredSettings(seed=split), time.process_time()
    problem = NetProblem.of(data, make_loss("ap"), settings)
    start = log_loss_net(problem.inputs, problem.relevant, hidden, split)
    started = time.process_time()
    nets = list(train_layer_wise(data, make_loss("ap"), settings, hidden, C, Watch(), start))
    taken = time.process_time() - started
    best = min(nets, key=lambda net: net.held_out)
    rows = Rows(X[test])
    scores = [
        linear.decision_function(scaler.transform(X[test])),
        svm.decision_function(X[test]),
        start.behind(problem.scaling).scores(rows),
        best.net.scores(rows),
    ]
    figures = [float(average_precision_score(relevant[test], one)) for one in scores]
    return [*figures, started - began, taken, best.passes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", metavar="DATA", help="svmlight files of two labels")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--hidden", default="16")
    parser.add_argument("--multiples", default="1,0.1,0.01", help="of the default C, with commas between them")
    options = parser.parse_args()
    C = [DEFAULT_C * float(word) for word in options.multiples.split(",")]
    means = {}
    for path in options.data:
        dataset = read_svmlight(path)
        X, relevant = dataset.X.toarray(), dataset.relevance == dataset.relevance.max()
        results = [of_split(X, relevant, split, hidden_layers(options.hidden), C) for split in range(options.splits)]
        name = Path(path).name.split(".")[0]
        print(name, *(" ".join(f"{value:.3f}" for value in result[:4]) for result in results), sep="\n  ", flush=True)
        means[name] = np.mean(results, axis=0)
    frame = pd.DataFrame.from_dict(means, orient="index", columns=COLUMNS)
    print(f"\nmean\n{frame.to_string(float_format='{:.3f}'.format)}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
