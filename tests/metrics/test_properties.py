"""Properties of every metric, for any scores."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import each_metric

from apsvm.metrics import TIE_RULES

LEVELS = 12
rows = st.lists(st.tuples(st.integers(-LEVELS, LEVELS), st.booleans()), min_size=2, max_size=40).filter(
    lambda drawn: len({label for _, label in drawn}) == 2
)
steps = st.lists(st.floats(1e-3, 1e6), min_size=2 * LEVELS, max_size=2 * LEVELS)
few = settings(max_examples=15)  # of each metric
tie_rules = st.sampled_from(TIE_RULES)


def arrays(drawn):
    scores, relevant = zip(*drawn, strict=True)
    return np.array(scores, dtype=float), np.array(relevant)


@each_metric
@few
@given(drawn=rows, steps=steps, ties=tie_rules)
def test_strictly_increasing_transforms_change_nothing(metric, drawn, steps, ties):
    """Transforms that keep 0 where it is, for F1's sake."""
    scores, relevant = arrays(drawn)
    above, below = np.cumsum(steps[:LEVELS]), -np.cumsum(steps[LEVELS:])
    images = np.concatenate([below[::-1], [0.0], above])
    assert (np.diff(images) > 0).all()
    assert metric(images[scores.astype(int) + LEVELS], relevant, ties) == metric(scores, relevant, ties)


@each_metric
@few
@given(drawn=rows, ties=tie_rules)
def test_values_lie_between_0_and_1(metric, drawn, ties):
    assert 0 <= metric(*arrays(drawn), ties) <= 1


@each_metric
@few
@given(drawn=rows)
def test_pessimistic_is_at_most_block_and_file(metric, drawn):
    """Inside a block the pessimistic precisions rise up to the block's own, so this holds for the AP family too."""
    scores, relevant = arrays(drawn)
    pessimistic = metric(scores, relevant, "pessimistic")
    assert pessimistic <= metric(scores, relevant, "block") + 1e-12
    assert pessimistic <= metric(scores, relevant, "file") + 1e-12


@each_metric
@few
@given(drawn=rows, seed=st.integers(0, 2**32 - 1), ties=st.sampled_from(["block", "pessimistic"]))
def test_the_order_of_the_rows_does_not_matter_but_to_file(metric, drawn, seed, ties):
    scores, relevant = arrays(drawn)
    shuffle = np.random.default_rng(seed).permutation(scores.size)
    assert metric(scores[shuffle], relevant[shuffle], ties) == metric(scores, relevant, ties)
