# %% [markdown]
# # Retrieval: more like these
#
# A user looks for pictures of one kind in an archive, says of the first few whether they are right, and asks for
# more: a ranker is trained on what has been said so far, and its best pictures are shown next. Digits of 8 × 8 pixels
# stand for the archive.

# %%
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score

from apsvm import APSVMClassifier

X, digit = load_digits(return_X_y=True)
X, wanted = X / 16, digit == 3
rng = np.random.default_rng(0)

# %% [markdown]
# The first forty are drawn at random; twenty more are judged in each round, the best of those not yet seen. On rows
# so few the hinge is the safe bound.

# %%
judged = rng.permutation(wanted.size)[:40]
for number in range(1, 6):
    ranker = APSVMClassifier(bound="hinge").fit(X[judged], wanted[judged])
    unseen = np.setdiff1d(np.arange(wanted.size), judged)
    scores = ranker.decision_function(X[unseen])
    shown = unseen[np.argsort(-scores)[:20]]
    precision = average_precision_score(wanted[unseen], scores)
    print(
        f"round {number}: {wanted[shown].sum()} of 20 shown are right, AP {precision:.3f} of {unseen.size} not yet seen"
    )
    judged = np.concatenate([judged, shown])

# %% [markdown]
# Say what is wrong, too: if pictures without a judgement are taken for negatives, the wanted ones among them stand at
# the top as if they were mistakes, and a loss that weighs the top suffers most. Logistic regression takes that
# better.
