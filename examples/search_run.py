# %% [markdown]
# # Search: from graded documents to a TREC run
#
# Documents with grades 0 to 4 in queries. The loss is one minus NDCG of the grades; the run is what trec_eval reads.

# %%
from pathlib import Path

import numpy as np

from apsvm import APSVMRanker, read_svmlight
from apsvm.metrics.evaluate import evaluate

train = read_svmlight("search_train.svm.gz")
test = read_svmlight("search_test.svm.gz", n_features=train.X.shape[1], ignore_unknown=True)
print(f"{np.unique(train.groups).size} queries to train on, {np.unique(test.groups).size} to test")

# %% [markdown]
# The hinge: convex, with a certificate of the global optimum, and indifferent to C on so few queries.

# %%
ranker = APSVMRanker("ndcg", bound="hinge").fit(train.X, train.relevance, qid=train.groups)
scores = ranker.decision_function(test.X)
judged = evaluate(["nDCG(exp)@10", "RR"], scores, test.relevance, groups=test.groups, relevant_from=1)
print(", ".join(f"{name} {value:.3f}" for name, value in judged.values.items()))

# %% [markdown]
# A run: query, Q0, document, rank, score, tag.

# %%
lines = []
for query in np.unique(test.groups):
    rows = np.flatnonzero(test.groups == query)
    for rank, row in enumerate(rows[np.argsort(-scores[rows], kind="stable")], 1):
        lines.append(f"{query} Q0 doc{row} {rank} {scores[row]:.6f} apsvm")
Path("search.run").write_text("\n".join(lines) + "\n")
print(*lines[:3], sep="\n")
