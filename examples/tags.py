# %% [markdown]
# # Several labels a row
#
# Source files, by the words of their docstrings, and the modules that they import: a ranker for each label, each with
# its own list. Labels are counted from 0; `tags_names.txt.gz` has their names.

# %%
import gzip

from sklearn.metrics import average_precision_score

from apsvm import APSVMClassifier, read_svmlight

with gzip.open("tags_names.txt.gz", "rt") as file:
    names = file.read().split()
train = read_svmlight("tags_train.svm.gz", multilabel=True)
test = read_svmlight("tags_test.svm.gz", multilabel=True, n_features=train.X.shape[1])
print(f"{train.X.shape[0]} files, {train.X.shape[1]} words, {len(names)} labels")

# %% [markdown]
# Four of the twenty. For all of them at once, into one model: `apsvm train --one-vs-rest tags_train.svm.gz
# tags.model`.

# %%
for name in ("warnings", "re", "functools", "os"):
    label = names.index(name)
    ranker = APSVMClassifier(bound="hinge").fit(train.X, train.have(label))
    scores = ranker.decision_function(test.X)
    found = test.have(label)
    first = scores.argsort()[::-1][:10]
    print(f"{name:<10} AP {average_precision_score(found, scores):.3f}, {found[first].sum()} of the first 10")
