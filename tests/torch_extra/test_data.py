"""Batches with positives in each."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from apsvm.torch import StratifiedBatchSampler


def batches_of(target, **options):
    return [*StratifiedBatchSampler(target, generator=torch.Generator().manual_seed(0), **options)]


@pytest.mark.parametrize(
    ("n_pos", "n_neg", "options", "of_batch"),
    [
        (10, 990, {"batch_size": 50, "n_pos": 5}, 5),
        (10, 990, {"batch_size": 50, "share": 0.3}, 15),
        (10, 990, {"batch_size": 50}, 1),
        (500, 20, {"batch_size": 16}, 15),
        (1, 1, {"batch_size": 2}, 1),
        (3, 4, {"batch_size": 100, "n_pos": 40}, 40),
    ],
)
def test_every_batch_is_alike_and_every_row_comes_up(n_pos, n_neg, options, of_batch):
    target = torch.arange(n_pos + n_neg) < n_pos
    target = target[torch.randperm(target.numel(), generator=torch.Generator().manual_seed(1))]
    batches = batches_of(target, **options)
    assert len(batches) == len(StratifiedBatchSampler(target, **options))
    for batch in batches:
        assert len(batch) == options["batch_size"]
        assert target[batch].sum().item() == of_batch
    times = torch.bincount(torch.tensor(batches).flatten(), minlength=target.numel())
    assert times.min().item() >= 1
    for positive in (True, False):
        of_class = times[target == positive]
        assert of_class.max().item() - of_class.min().item() <= 1


def test_targets_that_are_no_tensors():
    for target in ([1, 0, 0, 1], np.array([0.5, -1.0, 0.0, 2.0])):
        for batch in StratifiedBatchSampler(target, 2):
            assert sorted(row in (0, 3) for row in batch) == [False, True]


def test_epochs_differ_and_a_seed_repeats_them():
    target = torch.arange(100) < 10
    sampler = StratifiedBatchSampler(target, 20, generator=torch.Generator().manual_seed(3))
    first, second = [*sampler], [*sampler]
    assert first != second
    assert [*StratifiedBatchSampler(target, 20, generator=torch.Generator().manual_seed(3))] == first


def test_in_a_loader():
    target = torch.tensor([1.0] * 5 + [-1.0] * 45)
    data = TensorDataset(torch.arange(50), target)
    seen = [of_batch for _, of_batch in DataLoader(data, batch_sampler=StratifiedBatchSampler(target, 10, n_pos=2))]
    assert len(seen) == 6
    assert all((of_batch > 0).sum().item() == 2 for of_batch in seen)


@pytest.mark.parametrize(
    ("target", "options", "says"),
    [
        (torch.ones(4), {"batch_size": 2}, "both classes, found 4 positives and 0 negatives"),
        (torch.tensor([1, 0]), {"batch_size": 2, "n_pos": 1, "share": 0.5}, "n_pos or share"),
        (torch.tensor([1, 0]), {"batch_size": 2, "n_pos": 2}, "2 positives of 2 rows"),
        (torch.tensor([1, 0]), {"batch_size": 1}, "0 positives of 1 rows"),
        (torch.tensor([1, 0]), {"batch_size": 2, "share": 1.5}, "share must be from 0 to 1"),
        (torch.tensor([[1, 0]]), {"batch_size": 2}, r"target must be \(n,\)"),
    ],
)
def test_what_cannot_be(target, options, says):
    with pytest.raises(ValueError, match=says):
        StratifiedBatchSampler(target, **options)
