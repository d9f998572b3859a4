# %% [markdown]
# # Embeddings that find their like, trained on lists longer than a batch
#
# A network learns to lay pictures of one kind side by side, and is judged on pictures that it never saw. A batch of 100
# has few of each kind, so the last 1,000 embeddings are kept in a bank, and each picture's list is the batch and the
# bank (Wang et al. 2020). Noisy digits stand for the pictures. Needs `pip install 'apsvm[torch]'`.

# %%
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import normalize

from apsvm.torch import SmoothAPLoss

torch.manual_seed(0)
torch.set_num_threads(1)  # so small a network gains nothing by more
X, digit = (torch.tensor(part) for part in load_digits(return_X_y=True))
X = (X.float() - X.mean()) / X.std()
X += 1.5 * torch.randn_like(X)  # pictures as a poor camera takes them
seen = torch.rand(len(X)) < 0.5
network = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 32))

# %%
loss, optimizer = SmoothAPLoss(), torch.optim.Adam(network.parameters(), lr=2e-3)
bank, kinds = torch.empty(0, 32), torch.empty(0, dtype=torch.long)
for _ in range(200):
    rows = seen.nonzero().squeeze(1)[torch.randperm(int(seen.sum()))[:100]]
    embeddings = normalize(network(X[rows]), dim=1)
    # One list a row: its similarities to the batch and the bank, itself left out.
    others = torch.ones(100, 100 + len(bank), dtype=torch.bool).fill_diagonal_(False)
    same = digit[rows][:, None] == torch.cat([digit[rows], kinds])
    optimizer.zero_grad()
    loss(embeddings @ torch.cat([embeddings, bank]).T, same, others).backward()
    optimizer.step()
    bank = torch.cat([embeddings.detach(), bank])[:1000]  # their gradients do not go back to earlier steps
    kinds = torch.cat([digit[rows], kinds])[:1000]

# %%
with torch.no_grad():
    for name, embed in (("pixels", lambda X: X), ("network", network)):
        found = normalize(embed(X[~seen]), dim=1)
        nearest = (found @ found.T).fill_diagonal_(-1).topk(10).indices
        right = (digit[~seen][nearest] == digit[~seen][:, None]).float()
        ten, first = right.mean(), right[:, 0].mean()
        print(f"{name}: of the same digit are {ten:.3f} of the ten nearest, {first:.3f} of the nearest")
