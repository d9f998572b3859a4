"""Shapes, masks and queries: what the losses see, and the way back."""

from __future__ import annotations

import pytest
import torch
from over import over

from apsvm.torch import APHingeLoss, BlackboxAPLoss, RankTripletLoss
from apsvm.torch.lists import PADDING, lists_of


def rows_of(lists):
    """The counting scores of each list, in the order of ``reduction="none"``."""
    blocks = [
        row if block.valid is None else row[valid]
        for block in lists.blocks
        for row, valid in zip(block.scores, block.scores if block.valid is None else block.valid, strict=True)
    ]
    order = range(len(blocks)) if lists.order is None else lists.order.tolist()
    return [blocks[at].tolist() for at in order]


def reduced(lists, values, reduction):
    return lists.reduce(values, [block.counts for block in lists.blocks], reduction)


def test_one_list_and_a_batch():
    scores, target = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([1, 0, 0])
    one = lists_of(scores, target)
    assert rows_of(one) == [[3.0, 1.0, 2.0]]
    assert one.shape == ()
    batch = lists_of(scores.expand(4, 3), target.expand(4, 3))
    assert rows_of(batch) == [[3.0, 1.0, 2.0]] * 4
    assert batch.shape == (4,)
    columns = lists_of(scores.expand(4, 3).t(), target.expand(4, 3).t(), dim=0)
    assert rows_of(columns) == rows_of(batch)


def test_what_does_not_count_is_zero_and_has_no_gradient():
    scores = torch.tensor([[1.0, torch.nan, 3.0], [4.0, 5.0, torch.inf]], requires_grad=True)
    target = torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, -1.0]])
    mask = torch.tensor([[True, False, True], [True, True, True]])
    (block,) = lists_of(scores, target, mask=mask, ignore_index=-1).blocks
    assert block.valid is not None
    assert block.scores.tolist() == [[1.0, 0.0, 3.0], [4.0, 5.0, 0.0]]
    assert block.target.tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert block.n_pos.tolist() == [1, 1]
    assert block.n_neg.tolist() == [1, 1]
    assert block.finite.tolist() == [True, True]
    block.scores.sum().backward()
    assert scores.grad is not None
    assert scores.grad.tolist() == [[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]


@pytest.mark.parametrize("long", [4, 1000])
def test_queries_in_any_order(long):
    generator = torch.Generator().manual_seed(long)
    qid = torch.tensor([7] * 3 + [-2] * 1 + [9] * long + [4] * 5 + [100] * 2)
    qid = qid[torch.randperm(qid.numel(), generator=generator)]
    scores = torch.randn(qid.numel(), generator=generator, requires_grad=True)
    lists = lists_of(scores, torch.zeros_like(qid), qid=qid)
    assert rows_of(lists) == [scores[qid == query].tolist() for query in (-2, 4, 7, 9, 100)]
    assert lists.shape == (5,)
    slots = sum(block.scores.numel() for block in lists.blocks)
    assert slots <= PADDING * qid.numel()
    assert (len(lists.blocks) > 1) == (long == 1000)
    sums = reduced(lists, [block.scores.sum(1) for block in lists.blocks], "none")
    expected = torch.stack([scores[qid == query].sum() for query in (-2, 4, 7, 9, 100)])
    torch.testing.assert_close(sums, expected)
    (sums * torch.arange(5)).sum().backward()
    assert scores.grad is not None
    assert scores.grad.tolist() == [[-2, 4, 7, 9, 100].index(query) for query in qid.tolist()]


def test_no_rows():
    for shape in ((0,), (0, 5), (3, 0)):
        lists = lists_of(torch.zeros(shape), torch.zeros(shape))
        (block,) = lists.blocks
        assert not block.counts.any()
        for reduction in ("mean", "sum"):
            assert reduced(lists, [block.settle(block.scores.sum(1)).values], reduction).item() == 0.0
        assert reduced(lists, [block.scores.sum(1)], "none").shape == shape[:-1]
    empty = lists_of(torch.zeros(0), torch.zeros(0), qid=torch.zeros(0, dtype=torch.int64))
    assert reduced(empty, [block.scores.sum(1) for block in empty.blocks], "none").shape == (0,)


def test_the_mean_is_over_lists_that_count():
    scores = torch.zeros(3, 2, dtype=torch.float16)
    lists = lists_of(scores, torch.tensor([[1, 0], [1, 1], [0, 1]]))
    (block,) = lists.blocks
    values = [block.settle(torch.tensor([0.5, 7.0, 0.25], dtype=torch.float64)).values]
    assert reduced(lists, values, "mean").item() == 0.375
    assert reduced(lists, values, "sum").item() == 0.75
    assert reduced(lists, values, "none").tolist() == [0.5, 0.0, 0.25]
    assert reduced(lists, values, "mean").dtype == torch.float32


def test_nan_stays_nan_with_its_gradient():
    scores = torch.tensor([[1.0, 2.0], [torch.nan, 2.0], [3.0, -torch.inf], [1.0, torch.nan]], requires_grad=True)
    (block,) = lists_of(scores, torch.tensor([[1, 0], [1, 0], [1, 0], [0, 0]])).blocks
    values, _ = block.settle(block.scores.sum(1))
    assert values.isnan().tolist() == [False, True, True, True]
    values.nansum()
    values.sum().backward()
    assert scores.grad is not None
    assert scores.grad.isnan().tolist() == [[False] * 2, [True] * 2, [True] * 2, [True] * 2]


@over(
    ("arguments", "error", "says"),
    [
        ({"scores": [1.0, 2.0]}, TypeError, "scores must be a tensor, found list"),
        (
            {"scores": torch.tensor([1.0, 2.0]).to_sparse()},
            TypeError,
            "dense and floating point, found torch.float32, ",
        ),
        ({"scores": torch.tensor([1, 2])}, TypeError, "dense and floating point, found torch.int64"),
        ({"target": torch.zeros(3)}, ValueError, r"shape of scores, \(2,\), found \(3,\)"),
        ({"scores": torch.zeros(2, 2)}, ValueError, r"found \(2,\); for one list, pass scores\[:, 1\] - scores"),
        ({"scores": torch.zeros(2, 3)}, ValueError, r"found \(2,\); for numbers of 3 classes, pass .*one_hot.*dim=0"),
        ({"scores": torch.zeros(2, 1)}, ValueError, r"found \(2,\); for one list, pass scores.squeeze\(1\)"),
        ({"target": torch.zeros(2, dtype=torch.complex64)}, TypeError, "real numbers"),
        ({"target": torch.zeros(2, device="meta")}, ValueError, "target is on meta, scores are on cpu"),
        ({"mask": torch.ones(2)}, TypeError, "mask must be bool"),
        ({"qid": torch.zeros(2)}, TypeError, "qid must be integers"),
        ({"dim": 1}, ValueError, "no dimension 1"),
        ({"scores": torch.tensor(1.0), "target": torch.tensor(1)}, ValueError, r"found \(\)"),
        ({"scores": torch.zeros(1, 2, 3), "target": torch.zeros(1, 2, 3)}, ValueError, r"\(B, n\), found \(1, 2, 3\)"),
        (
            {name: torch.zeros(2, 2) for name in ("scores", "target")} | {"qid": torch.zeros(2, 2).long()},
            ValueError,
            r"qid goes with scores \(n,\)",
        ),
    ],
)
def test_what_does_not_fit_is_refused(arguments, error, says):
    with pytest.raises(error, match=says):
        lists_of(**{"scores": torch.zeros(2), "target": torch.ones(2)} | arguments)


@over(
    "loss",
    [
        APHingeLoss(),
        APHingeLoss(reduction="none"),  # without known slopes: other frames in between
        BlackboxAPLoss(),
        RankTripletLoss(both=False),
    ],
)
def test_a_column_of_scores_is_pointed_out_where_the_loss_is_called(loss):
    with pytest.warns(UserWarning, match=r"5 lists of one row each, and none counts.*squeeze\(1\)") as warned:
        loss(torch.zeros(5, 1), torch.ones(5, 1))
    assert {warning.filename for warning in warned} == {__file__}
