"""The losses as functions: each is its module, made and called at once. A loss of your own is checked each time that it
is made: where time matters, keep the module."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from apsvm.torch.blackbox import BlackboxAPLoss
from apsvm.torch.hinge import DirectLoss, Engine, NDCGHingeLoss, RankingHingeLoss, RankingRampLoss, Update
from apsvm.torch.lists import Reduction
from apsvm.torch.smooth import RecallAtKLoss, SmoothAPLoss
from apsvm.torch.sodeep import DEFAULT, MAPForm, RankRecallLoss, RankTripletLoss, SoDeepMAPLoss, SpearmanLoss
from apsvm.torch.soft_rank import Kernel, soft_ranks
from apsvm.torch.sorters.quality import AnySorter

__all__ = [
    "ap_hinge",
    "blackbox_ap",
    "direct",
    "ndcg_hinge",
    "rank_recall",
    "rank_triplet",
    "ranking_hinge",
    "ranking_ramp",
    "recall_at_k",
    "smooth_ap",
    "sodeep_map",
    "soft_ranks",
    "spearman",
]


def ranking_hinge(
    scores: Tensor,
    target: Tensor,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    dim: int = -1,
    *,
    loss: str | object = "ap",
    engine: Engine = "auto",
    reduction: Reduction = "mean",
    ignore_index: int | None = None,
) -> Tensor:
    """See ``RankingHingeLoss``."""
    module = RankingHingeLoss(loss, engine=engine, reduction=reduction, ignore_index=ignore_index)
    return module(scores, target, mask, qid, dim)


def ap_hinge(
    scores: Tensor,
    target: Tensor,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    dim: int = -1,
    *,
    engine: Engine = "auto",
    reduction: Reduction = "mean",
    ignore_index: int | None = None,
) -> Tensor:
    """See ``APHingeLoss``."""
    return ranking_hinge(scores, target, mask, qid, dim, engine=engine, reduction=reduction, ignore_index=ignore_index)


def ndcg_hinge(
    scores: Tensor,
    target: Tensor,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    dim: int = -1,
    *,
    gain: str = "exponential",
    engine: Engine = "auto",
    reduction: Reduction = "mean",
    ignore_index: int | None = None,
) -> Tensor:
    """See ``NDCGHingeLoss``."""
    module = NDCGHingeLoss(gain, engine=engine, reduction=reduction, ignore_index=ignore_index)
    return module(scores, target, mask, qid, dim)


def ranking_ramp(
    scores: Tensor,
    target: Tensor,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    dim: int = -1,
    *,
    loss: str | object = "ap",
    eps: float = 1.0,
    normalize: bool = False,
    engine: Engine = "auto",
    reduction: Reduction = "mean",
    ignore_index: int | None = None,
) -> Tensor:
    """See ``RankingRampLoss``."""
    module = RankingRampLoss(
        loss, eps=eps, normalize=normalize, engine=engine, reduction=reduction, ignore_index=ignore_index
    )
    return module(scores, target, mask, qid, dim)


def direct(
    scores: Tensor,
    target: Tensor,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    dim: int = -1,
    *,
    loss: str | object = "ap",
    eps: float = 0.3,
    normalize: bool = True,
    update: Update = "positive",
    engine: Engine = "auto",
    reduction: Reduction = "mean",
    ignore_index: int | None = None,
) -> Tensor:
    """See ``DirectLoss``."""
    module = DirectLoss(
        loss,
        eps=eps,
        normalize=normalize,
        update=update,
        engine=engine,
        reduction=reduction,
        ignore_index=ignore_index,
    )
    return module(scores, target, mask, qid, dim)


def smooth_ap(
    scores: Tensor,
    target: Tensor,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    dim: int = -1,
    *,
    tau: float | None = None,
    kernel: Kernel = "laplace",
    reduction: Reduction = "mean",
    ignore_index: int | None = None,
) -> Tensor:
    """See ``SmoothAPLoss``."""
    module = SmoothAPLoss(tau, kernel, reduction=reduction, ignore_index=ignore_index)
    return module(scores, target, mask, qid, dim)


def recall_at_k(
    scores: Tensor,
    target: Tensor,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    dim: int = -1,
    *,
    ks: Sequence[int] = (1, 2, 4, 8, 16),
    tau: float | None = None,
    tau_rank: float = 1.0,
    kernel: Kernel = "laplace",
    reduction: Reduction = "mean",
    ignore_index: int | None = None,
) -> Tensor:
    """See ``RecallAtKLoss``."""
    module = RecallAtKLoss(ks, tau, tau_rank, kernel, reduction=reduction, ignore_index=ignore_index)
    return module(scores, target, mask, qid, dim)


def blackbox_ap(
    scores: Tensor,
    target: Tensor,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    dim: int = -1,
    *,
    lam: float = 4.0,
    margin: float = 0.2,
    normalize: bool = True,
    reduction: Reduction = "mean",
    ignore_index: int | None = None,
) -> Tensor:
    """See ``BlackboxAPLoss``."""
    module = BlackboxAPLoss(lam, margin, normalize=normalize, reduction=reduction, ignore_index=ignore_index)
    return module(scores, target, mask, qid, dim)


def spearman(
    scores: Tensor,
    target: Tensor,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    dim: int = -1,
    *,
    sorter: AnySorter | str = DEFAULT,
    l1: float = 0.0,
    reduction: Reduction = "mean",
    ignore_index: int | None = None,
) -> Tensor:
    """See ``SpearmanLoss``."""
    module = SpearmanLoss(sorter, l1=l1, reduction=reduction, ignore_index=ignore_index)
    return module(scores, target, mask, qid, dim)


def sodeep_map(
    scores: Tensor,
    target: Tensor,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    dim: int = -1,
    *,
    sorter: AnySorter | str = DEFAULT,
    form: MAPForm = "ap",
    reduction: Reduction = "mean",
    ignore_index: int | None = None,
) -> Tensor:
    """See ``SoDeepMAPLoss``."""
    module = SoDeepMAPLoss(sorter, form=form, reduction=reduction, ignore_index=ignore_index)
    return module(scores, target, mask, qid, dim)


def rank_triplet(
    scores: Tensor,
    target: Tensor | None = None,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    dim: int = -1,
    *,
    sorter: AnySorter | str = DEFAULT,
    margin: float | None = None,
    both: bool = True,
    reduction: Reduction = "mean",
    ignore_index: int | None = None,
) -> Tensor:
    """See ``RankTripletLoss``."""
    module = RankTripletLoss(sorter, margin=margin, both=both, reduction=reduction, ignore_index=ignore_index)
    return module(scores, target, mask, qid, dim)


def rank_recall(
    scores: Tensor,
    target: Tensor | None = None,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    dim: int = -1,
    *,
    sorter: AnySorter | str = DEFAULT,
    k: int | None = None,
    tau: float = 1.0,
    both: bool = True,
    reduction: Reduction = "mean",
    ignore_index: int | None = None,
) -> Tensor:
    """See ``RankRecallLoss``."""
    module = RankRecallLoss(sorter, k=k, tau=tau, both=both, reduction=reduction, ignore_index=ignore_index)
    return module(scores, target, mask, qid, dim)
