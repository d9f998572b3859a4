"""Exact rank losses for networks (the extra ``apsvm[torch]``).

    from apsvm.torch import APHingeLoss
    loss = APHingeLoss()(scores, target)                # one list, or a batch of lists
    loss = APHingeLoss()(scores, target, qid=qid)       # lists of any length, by query

Every loss takes scores (n,) or (B, n) of any floating-point type on any device, a target of the same shape, and a mask
or queries; see ``ListLoss``. The hinge and the ramp are bounds: Δ of the ranking by score ≤ ramp ≤ hinge. No ranking
loss is better than binary cross-entropy in general: compare both.
"""

from __future__ import annotations

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError("apsvm.torch needs PyTorch: pip install 'apsvm[torch]'") from error

from apsvm.torch.base import ListLoss
from apsvm.torch.blackbox import BlackboxAPLoss
from apsvm.torch.checkpoint import load_sorter
from apsvm.torch.hinge import APHingeLoss, DirectLoss, NDCGHingeLoss, RankingHingeLoss, RankingRampLoss
from apsvm.torch.smooth import RecallAtKLoss, SmoothAPLoss
from apsvm.torch.sodeep import RankRecallLoss, RankTripletLoss, SoDeepMAPLoss, SpearmanLoss
from apsvm.torch.soft_rank import SoftRank, soft_ranks
from apsvm.torch.sorters import make_sorter

__all__ = [
    "APHingeLoss",
    "BlackboxAPLoss",
    "DirectLoss",
    "ListLoss",
    "NDCGHingeLoss",
    "RankRecallLoss",
    "RankTripletLoss",
    "RankingHingeLoss",
    "RankingRampLoss",
    "RecallAtKLoss",
    "SmoothAPLoss",
    "SoDeepMAPLoss",
    "SoftRank",
    "SpearmanLoss",
    "load_sorter",
    "make_sorter",
    "soft_ranks",
]
