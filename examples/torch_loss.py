# %% [markdown]
# # A ranking loss in a PyTorch loop
#
# A small network, first on cross-entropy, then on Smooth-AP, with batches that always have positives. Needs `pip
# install 'apsvm[torch]'`. Compare before you believe: in our study no ranking loss beat cross-entropy in general.

# %%
import numpy as np
import pandas as pd
import torch
from sklearn.metrics import average_precision_score
from torch.utils.data import BatchSampler, WeightedRandomSampler

from apsvm.torch import SmoothAPLoss

torch.manual_seed(0)
torch.set_num_threads(1)  # so small a network gains nothing by more
tables = [pd.read_csv(f"mammography_{half}.csv.gz", index_col="image") for half in ("train", "test")]
y, y_test = (torch.tensor(table.pop("calcification").to_numpy(), dtype=torch.float32) for table in tables)
X, X_test = (torch.tensor(table.to_numpy(), dtype=torch.float32) for table in tables)
mean, deviation = X.mean(0), X.std(0)
X, X_test = (X - mean) / deviation, (X_test - mean) / deviation

network = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))


# %%
def passes(loss, number: int, rate: float) -> float:
    """Trains for ``number`` passes and returns the test AP."""
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    weights = torch.where(y > 0, 16 / y.sum(), 240 / (1 - y).sum())  # 16 positives of 256 rows on average
    batches = BatchSampler(WeightedRandomSampler(weights, len(y)), batch_size=256, drop_last=False)
    for _ in range(number):
        for rows in batches:
            optimizer.zero_grad()
            loss(network(X[rows]).squeeze(1), y[rows]).backward()
            optimizer.step()
    with torch.no_grad():
        return average_precision_score(np.asarray(y_test), np.asarray(network(X_test).squeeze(1)))


# %%
print(f"cross-entropy: AP {passes(torch.nn.BCEWithLogitsLoss(), 3, 1e-2):.3f}")
print(f"then Smooth-AP: AP {passes(SmoothAPLoss(), 1, 1e-3):.3f}")
