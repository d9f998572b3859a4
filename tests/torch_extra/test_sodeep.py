"""The losses over sorters: against their definitions with exact ranks, their conventions, and that they train."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from over import over
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, roc_auc_score

from apsvm.torch.checkpoint import load_sorter, write_checkpoint
from apsvm.torch.ranks import exact_ranks
from apsvm.torch.score_lists import seeded
from apsvm.torch.sodeep import RankRecallLoss, RankTripletLoss, SoDeepMAPLoss, SorterLoss, SpearmanLoss
from apsvm.torch.sorters import Sorter, SorterError, make_sorter
from apsvm.torch.sorters.training import SorterSettings, SorterTraining


def make(kind, sorter="laplace(5)", **options):
    """A loss by the name of a test's parameter."""
    classes = {
        "spearman": SpearmanLoss,
        "ap": SoDeepMAPLoss,
        "seed": SoDeepMAPLoss,
        "triplet": RankTripletLoss,
        "rank": RankRecallLoss,
        "recall": RankRecallLoss,
    }
    special = {
        "seed": {"form": "seed"},
        "triplet": {"both": False},
        "rank": {"both": False},
        "recall": {"both": False, "k": 3},
    }
    return classes[kind](sorter, **{**special.get(kind, {}), **options})


LOSSES = ("spearman", "ap", "seed", "triplet", "rank", "recall")


def random_lists(lists=4, length=12, seed=0, dtype=torch.float64):
    generator = seeded("sodeep", seed)
    scores = torch.randn(lists, length, generator=generator, dtype=dtype)
    target = torch.rand(lists, length, generator=generator) < 0.4
    target[:, 0], target[:, 1] = True, False
    return scores, target


def test_spearman_with_exact_ranks_is_one_minus_rho():
    scores, _ = random_lists()
    wanted, _ = random_lists(seed=1)
    loss = SpearmanLoss(exact_ranks, reduction="none")(scores, wanted)
    expected = [1 - spearmanr(*rows).statistic for rows in zip(scores, wanted, strict=True)]
    np.testing.assert_allclose(loss.numpy(), expected, atol=1e-12)


def test_the_seeds_map_loss_is_the_roc_area():
    scores, target = random_lists()
    loss = make("seed", exact_ranks, reduction="none")(scores, target)
    for value, s, y in zip(loss.tolist(), scores.numpy(), target.numpy(), strict=True):
        P, N = y.sum(), (~y).sum()
        assert value == pytest.approx((P * (P + 1) / 2 + P * N * (1 - roc_auc_score(y, s))) / y.size, abs=1e-12)


def test_the_ap_form_is_average_precision():
    scores, target = random_lists()
    loss = make("ap", exact_ranks, reduction="none")(scores, target)
    expected = [1 - average_precision_score(y, s) for s, y in zip(scores.numpy(), target.numpy(), strict=True)]
    np.testing.assert_allclose(loss.numpy(), expected, atol=1e-12)
    sharp = make("ap", "laplace(1e7)", reduction="none")(scores, target)
    np.testing.assert_allclose(sharp.numpy(), expected, atol=1e-5)


def test_triplets_with_exact_ranks():
    scores = torch.tensor([[3.0, 2.0, 1.0, 0.0]])
    target = torch.tensor([[False, True, True, False]])
    # Ranks ¼ ½ ¾ 1; the first negative has ¼: (¼ + ½ − ¼ + ¼ + ¾ − ¼)/2.
    assert float(make("triplet", exact_ranks)(scores, target)) == pytest.approx(0.625)
    first = torch.tensor([[True, True, False, False]])
    assert float(make("triplet", exact_ranks)(scores, first)) == 0.0


def test_a_matrix_has_rows_and_columns():
    scores = torch.tensor([[5.0, 4.0, 0.0], [1.0, 2.0, 3.0], [0.0, 6.0, 7.0]])
    # The diagonal's ranks: rows 1, 2, 1; columns 1, 3, 1.
    assert float(RankRecallLoss(exact_ranks, both=False)(scores)) == pytest.approx(4 / 9)
    assert float(RankRecallLoss(exact_ranks, both=False)(scores, dim=0)) == pytest.approx(5 / 9)
    assert float(RankRecallLoss(exact_ranks)(scores)) == pytest.approx(9 / 18)
    assert RankRecallLoss(exact_ranks, reduction="none")(scores).tolist() == pytest.approx(
        [1 / 3, 2 / 3, 1 / 3, 1 / 3, 1.0, 1 / 3]
    )
    eye = torch.eye(3, dtype=torch.bool)
    for loss in (RankTripletLoss(exact_ranks), RankRecallLoss(exact_ranks, k=1)):
        assert torch.equal(loss(scores), loss(scores, eye))
    with pytest.raises(ValueError, match="square"):
        RankTripletLoss(exact_ranks)(scores[:2])


@pytest.mark.parametrize("masked", [False, True])
def test_the_rows_of_a_padded_batch_are_lists_and_its_columns_are_not(masked):
    """Only a square matrix without a mask has its columns too."""
    scores, target = random_lists(3, 3 if masked else 5)
    mask = torch.ones_like(target) if masked else None
    for make_loss in (RankTripletLoss, RankRecallLoss):
        rows = make_loss("laplace(5)", both=False, reduction="none")(scores, target, mask)
        torch.testing.assert_close(make_loss("laplace(5)", reduction="none")(scores, target, mask), rows)


@pytest.mark.parametrize("masked", [False, True])
def test_equal_scores_have_the_value_of_their_mean_ranks(masked):
    target = torch.arange(40) < 2
    mask = torch.arange(40) < 30 if masked else None
    for sorter in ("laplace(10)", exact_ranks):
        value = float(SoDeepMAPLoss(sorter)(torch.zeros(40), target, mask))
        assert value == pytest.approx(1 - 3 / ((30 if masked else 40) + 1), abs=1e-5)


def test_recall_at_k():
    scores = torch.tensor([[3.0, 2.0, 1.0, 0.0]]).double()
    target = torch.tensor([[False, True, False, True]])  # at 2 and 4
    loss = RankRecallLoss(exact_ranks, k=2, tau=1e-3, both=False)(scores, target)
    assert float(loss) == pytest.approx(0.5, abs=1e-9)
    soft = RankRecallLoss(exact_ranks, k=2, tau=2.0, both=False)(scores, target)
    expected = 1 - np.mean([1 / (1 + np.exp(-(2.5 - rank) / 2.0)) for rank in (2, 4)])
    assert float(soft) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", LOSSES)
def test_gradient(kind):
    scores, target = random_lists(2, 6)
    if kind == "spearman":
        target = random_lists(2, 6, seed=3)[0]
    scores.requires_grad_()
    assert torch.autograd.gradcheck(lambda s: make(kind, "handcrafted(3)")(s, target), (scores,), atol=1e-6)


def test_the_ap_form_is_between_0_and_1_for_any_sorter():
    wild = torch.nn.Linear(12, 12)  # ranks that are none
    for seed in range(20):
        scores, target = random_lists(seed=seed, dtype=torch.float32)
        with torch.no_grad():
            values = make("ap", lambda s: 5 * wild(s), reduction="none")(scores, target)
        assert ((values >= 0) & (values <= 1)).all()


@over(
    ("call", "message"),
    [
        (lambda: SpearmanLoss("laplce"), "unknown sorter"),
        (lambda: SpearmanLoss("lstm"), "must be trained first"),
        (lambda: SpearmanLoss("laplace", reduction="max"), "reduction must be"),
        (lambda: SoDeepMAPLoss("laplace", form="auc"), "form must be"),
        (lambda: RankRecallLoss("laplace", k=0), "k must be"),
        (lambda: RankRecallLoss("laplace", tau=0.0), "tau must be"),
        (lambda: SpearmanLoss("laplace")(torch.zeros(3), torch.zeros(4)), "shape of scores"),
        (lambda: RankRecallLoss("laplace")(torch.zeros(3)), "square matrix"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_modules():
    loss = SpearmanLoss("laplace(5)")
    scores, target = random_lists()
    for again in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert torch.equal(again(scores, target.double()), loss(scores, target.double()))
    assert loss.state_dict() == {}
    assert "LaplaceSorter" in repr(loss)
    assert isinstance(loss, SorterLoss)


@pytest.mark.parametrize("name", ["neighbours", "cnn(2)"])
def test_an_untrained_sorter_is_refused(name):
    sorter = make_sorter(name, 80)
    with pytest.raises(SorterError, match="must be trained first"):
        SpearmanLoss(sorter)
    again = make_sorter(name, 80)
    again.load_state_dict(sorter.state_dict())
    for ready in (again, sorter.freeze(), make_sorter("lstm", 80)):
        assert isinstance(SpearmanLoss(copy.deepcopy(ready)).sorter, Sorter)


def test_an_optimizer_over_the_loss_leaves_its_sorter_alone():
    """Neither the loss' sorter, nor that of a caller who goes on training it, changes by the other."""
    training = SorterTraining(SorterSettings(architecture="cnn(2)", length=12, batch=4))
    with pytest.raises(SorterError, match="must be trained first"):
        SpearmanLoss(training.sorter)
    training.step()
    for sorter in (torch.nn.Linear(12, 12), training.sorter):
        scores, target = random_lists(dtype=torch.float32)
        sorter(scores).sum().backward()  # so that it has gradients
        before = copy.deepcopy(sorter.state_dict())
        loss = SpearmanLoss(sorter)
        assert not any(parameter.requires_grad for parameter in loss.parameters())
        assert all(parameter.requires_grad and parameter.grad is not None for parameter in sorter.parameters())
        optimizer = torch.optim.Adam([scores.requires_grad_(), *loss.parameters()], lr=0.1)
        loss(scores, target.float()).backward()
        optimizer.step()
        assert scores.grad.any()
        for module in (sorter, loss.sorter):
            assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    training.step()
    assert not torch.equal(before["project.bias"], training.sorter.state_dict()["project.bias"])
    assert torch.equal(before["project.bias"], loss.sorter.state_dict()["project.bias"])


@pytest.mark.parametrize(("climb", "warns"), [(-0.2, True), (0.05, True), (0.5, False), (torch.nan, False)])
def test_a_sorter_whose_gradient_leads_nowhere(climb, warns, tmp_path):
    training = SorterTraining(SorterSettings(architecture="cnn(2)", length=12))
    write_checkpoint(tmp_path / "s", training.sorter, training.header(0.01, climb))
    for sorter in (str(tmp_path / "s"), load_sorter(tmp_path / "s")):
        if warns:
            says = f"'cnn\\(2\\)': its climb is {climb:.3f}: its gradient is useless"
            with pytest.warns(UserWarning, match=says) as warned:
                RankRecallLoss(sorter)
            assert warned[0].filename == __file__
        else:
            RankRecallLoss(sorter)


def test_spearman_of_nothing_and_of_columns():
    loss, (scores, target) = SpearmanLoss("laplace(5)"), random_lists(3, 7)
    target = target.double() + 0.1 * torch.arange(7)
    assert float(loss(scores.t(), target.t(), dim=0)) == pytest.approx(float(loss(scores, target)), abs=1e-12)
    for shape in ((0,), (0, 5), (3, 0), (4,), (2, 4)):
        nothing = torch.ones(shape, requires_grad=True)
        value = loss(nothing, torch.ones(shape))
        assert value.item() == 0.0
        assert not torch.autograd.grad(value, nothing)[0].any()


def test_spearman_trains():
    generator = seeded("regression")
    X = torch.randn(300, 5, generator=generator)
    target = torch.exp(X @ torch.tensor([1.0, -2.0, 0.5, 0.0, 1.5]))  # far from linear, but of the same order
    weights = torch.zeros(5).add(0.1).requires_grad_()
    optimizer = torch.optim.Adam([weights], lr=0.1)
    for _ in range(80):
        optimizer.zero_grad()
        SpearmanLoss("laplace(10)")(X @ weights, target).backward()
        optimizer.step()
    assert float(SpearmanLoss(exact_ranks)((X @ weights).detach(), target)) < 0.01
