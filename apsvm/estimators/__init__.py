"""The trainers of ``apsvm train`` as scikit-learn estimators.

``APSVMClassifier`` predicts one of two classes and works with scorers, displays, calibration and stratified folds.
``APSVMRanker`` takes grades and predicts scores. Both minimise any loss of the structured SVM, over one ranking or,
with ``qid``, one for each query. ``RankNCG`` (``--loss wmw``) and ``WARPRanker`` (``--loss warp``) are rankers.
"""

from apsvm.estimators.bags import stack_bags
from apsvm.estimators.messages import WeakRankerWarning
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
