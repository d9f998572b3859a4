"""scikit-learn's face: the trainers of ``apsvm train`` as estimators.

``APSVMClassifier`` takes two classes and predicts one of them, so that everything scikit-learn has for classifiers
(scorers, displays, calibration, stratified folds) takes it. ``APSVMRanker`` takes grades and predicts scores. Both
optimise any loss of the structured SVM by the trainer of ``apsvm train``, over one ranking or, with ``qid``, one a
query. ``RankNCG`` is ``--loss wmw`` and ``WARPRanker`` ``--loss warp``: rankers.
"""

from apsvm.estimators.bags import stack_bags
from apsvm.estimators.following import WeakRankerWarning
from apsvm.estimators.portfolio import APSVMClassifierCV, APSVMRankerCV
from apsvm.estimators.rank_ncg import RankNCG
from apsvm.estimators.structured import APSVMClassifier, APSVMRanker
from apsvm.estimators.warp import WARPRanker

__all__ = [
    "APSVMClassifier",
    "APSVMClassifierCV",
    "APSVMRanker",
    "APSVMRankerCV",
    "RankNCG",
    "WARPRanker",
    "WeakRankerWarning",
    "stack_bags",
]
