# %% [markdown]
# # The first hundred, with pandas
#
# Rare positives in a table: train, take the hundred rows that rank highest, say why each is there, and compare with
# logistic regression on rows that neither has seen.

# %%
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from apsvm import APSVMClassifier

spots = pd.read_csv("mammography_train.csv.gz", index_col="image")
y = spots.pop("calcification")
new = pd.read_csv("mammography_test.csv.gz", index_col="image")
truth = new.pop("calcification")
print(f"{len(spots)} rows to train on, {y.mean():.1%} positive")

# %% [markdown]
# No option: the loss is average precision, C and the bound are chosen on rows held out.

# %%
ranker = APSVMClassifier().fit(spots, y)
scores = pd.Series(ranker.decision_function(new), new.index)
first = scores.nlargest(100).index
print(f"apsvm: AP {average_precision_score(truth, scores):.3f}, {truth[first].sum()} of the first 100 are positive")

# %% [markdown]
# The score is a sum over the columns: what each adds is the reason.

# %%
_, names, gave = ranker.explain(new.loc[first])
gains = pd.DataFrame(gave, first, names)
for image in first[:3]:
    reasons = gains.loc[image].nlargest(2)
    print(image, ", ".join(f"{name} = {new.loc[image, name]:g} ({gain:+.0f})" for name, gain in reasons.items()))

# %% [markdown]
# Logistic regression on the same columns.

# %%
logistic = LogisticRegression(max_iter=1000).fit(spots, y).decision_function(new)
print(f"logistic regression: AP {average_precision_score(truth, logistic):.3f}")
