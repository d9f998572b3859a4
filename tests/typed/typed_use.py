"""A user's script, which mypy checks against the package; it is never run."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

from apsvm import APSVMClassifier, APSVMRanker, RankNCG, WARPRanker

X, y, qid = np.zeros((2, 2)), np.array([0, 1]), ["a", "b"]
assert_type(APSVMClassifier("ap", C=10).fit(X, y), APSVMClassifier)
assert_type(APSVMRanker().fit(X, y, qid=qid).decision_function(X), NDArray[np.float64])
assert_type(RankNCG().fit(X, y).score(X, y, qid=qid), float)
assert_type(WARPRanker.from_model(APSVMRanker().to_model()), WARPRanker)
assert_type(APSVMClassifier().fit(X, y).certificate_.gap, float)
# Each of these is an error: an ignore that hides none is one too.
APSVMClassifier(C=[10])  # type: ignore[arg-type]
APSVMRanker().fit(X)  # type: ignore[call-arg]
