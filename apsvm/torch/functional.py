"""The losses as functions: each is its module, made and called at once.

``scores``, ``target``, ``mask``, ``qid`` and ``dim`` are those of ``ListLoss.forward``, the rest is the class's, which
says more. A loss of your own is checked each time that it is made: where time matters, keep the module."""

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
    """The structured hinge of a ranking loss, ``max_R [Δ(R*, R) + F(R)] − F(R*)``: 0 or more, and at least the loss Δ.

    See ``RankingHingeLoss``; Yue, Finley, Radlinski and Joachims 2007, Mohapatra, Rolinek, Jawahar, Kolmogorov and
    Kumar 2018."""
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
    """The structured hinge of average precision, ``max_R [1 − AP(R) + F(R)] − F(R*)``: 0 or more, and at least 1 − AP.

    See ``APHingeLoss``; Yue, Finley, Radlinski and Joachims 2007."""
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
    """The structured hinge of NDCG, ``max_R [1 − NDCG(R) + F(R)] − F(R*)``, of grades the sum over their levels: 0 or
    more, and at least 1 − NDCG.

    See ``NDCGHingeLoss``; Chakrabarti, Khanna, Sawant and Bhattacharyya 2008, Mohapatra, Rolinek, Jawahar, Kolmogorov
    and Kumar 2018."""
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
    """The ramp of a ranking loss, ``max_R [Δ(R*, R) + F(R)] − max_R F(R)`` at scores divided by ``eps``: from 0 to 1,
    and at least the loss Δ.

    See ``RankingRampLoss``; Song, Schwing, Zemel and Urtasun 2016, whose positive update it is."""
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
    """Direct loss minimisation: ``(1/ε) {max_R [F + εΔ] − max_R F}`` by the positive update, at least the loss Δ, and
    ``(1/ε) {max_R F − max_R [F − εΔ]}`` by the negative one, at most Δ; from 0 to 1.

    See ``DirectLoss``; Song, Schwing, Zemel and Urtasun 2016."""
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
    """Smooth-AP, ``1 − 1/P Σ_{i ∈ pos} rank⁺_i / rank_i`` with soft ranks: from 0 to 1.

    See ``SmoothAPLoss``; Brown, Xie, Kalogeiton and Zisserman 2020."""
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
    """Recall@K, ``1 − mean_K 1/min(K, P) Σ_{i ∈ pos} σ((K + ½ − rank_i)/tau_rank)`` with soft ranks: at most
    1, and by default from −.07.

    See ``RecallAtKLoss``; Patel, Tolias and Matas 2022."""
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
    """One minus average precision, ``1 − 1/P Σ_{i ∈ pos} rank⁺_i / rank_i`` with exact ranks, from 0 to 1; its gradient
    is that of an interpolation.

    See ``BlackboxAPLoss``; Rolínek, Musil, Paulus, Vlastelica, Michaelis and Martius 2020."""
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
    """One minus Spearman's correlation, ``6 L²/(L² − 1) · mean_i (f(s)_i − rk(y)_i)²`` with the ranks f of a sorter:
    from 0, the same order, to 2, the opposite one.

    See ``SpearmanLoss``; Engilberge, Chevallier, Pérez and Cord 2019, equation (4)."""
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
    """One minus average precision by a sorter's ranks r, ``1 − mean_{i positive} r⁺_i / r_i``, from 0 to 1; with
    ``form="seed"`` the sum of the positives' normalised ranks, ``Σ_{i positive} f(s)_i``, from P(P + 1)/2L up.

    See ``SoDeepMAPLoss``; Engilberge, Chevallier, Pérez and Cord 2019, equation (7)."""
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
    """The triplet loss on a sorter's ranks, ``mean_{i positive} max(0, margin + f(s)_i − min_{j negative} f(s)_j)``:
    from 0 to 1 + ``margin``.

    See ``RankTripletLoss``; Engilberge, Chevallier, Pérez and Cord 2019, equations (9) and (10)."""
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
    """The mean normalised rank of the positives by a sorter, ``mean_{i positive} f(s)_i``, or with ``k``
    ``1 − mean_{i positive} σ((k + ½ − L f(s)_i)/tau)``: from 0 to 1.

    See ``RankRecallLoss``; Engilberge, Chevallier, Pérez and Cord 2019, equation (8)."""
    module = RankRecallLoss(sorter, k=k, tau=tau, both=both, reduction=reduction, ignore_index=ignore_index)
    return module(scores, target, mask, qid, dim)
