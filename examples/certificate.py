# %% [markdown]
# # A certificate, read and checked
#
# A model says how far its objective can be from the best one. What it says is recomputed here from the model's
# weights and the training rows, by the slowest and simplest oracle, without the solver.

# %%
import numpy as np
import pandas as pd

from apsvm import APSVMClassifier, load_model, most_violated_ranking

spots = pd.read_csv("mammography_train.csv.gz", index_col="image").iloc[:2000]
y = spots.pop("calcification").to_numpy() == 1
APSVMClassifier(bound="hinge", C=100.0, features="linear", scale="none").fit(spots, y).to_model().save("spots.model")

model = load_model("spots.model")
stated = model.header.certificate
print(f"stated: primal {stated.primal:.6f}, dual {stated.dual:.6f}, gap {stated.gap:.6f}, exact: {stated.exact}")

# %% [markdown]
# The primal objective is ½‖w‖² + C · hinge, and the hinge is the value of the most violated ranking.

# %%
scores = spots.to_numpy() @ model.coef
violation = most_violated_ranking(scores, y, "ap", "greedy")
primal = 0.5 * model.coef @ model.coef + 100.0 * violation.value
print(f"recomputed: primal {primal:.6f}")
assert np.isclose(primal, stated.primal)

# %% [markdown]
# No other weights may come out below the stated dual, which is a lower bound of them all. A hundred attempts:

# %%
rng = np.random.default_rng(0)
lowest = primal
for _ in range(100):
    w = model.coef * rng.uniform(0.8, 1.2) + 0.05 * rng.normal(size=model.coef.size)
    value = most_violated_ranking(spots.to_numpy() @ w, y, "ap").value
    lowest = min(lowest, 0.5 * w @ w + 100.0 * value)
print(f"lowest of 100 others: {lowest:.6f}")
assert lowest >= stated.dual
