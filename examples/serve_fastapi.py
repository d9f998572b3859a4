# %% [markdown]
# # Scores over HTTP, with FastAPI
#
# Two routes on a model of a table with words and missing cells. `pip install fastapi uvicorn`, and then, in
# this folder, `uvicorn serve_fastapi:app`; a request is a list of rows, as JSON objects:
# `curl -H 'content-type: application/json' -d '[{"island": "Dream", "sex": null, …}]' localhost:8000/first?top=1`

# %%
from typing import Any

import pandas as pd
from fastapi import FastAPI

from apsvm import APSVMClassifier

penguins = pd.read_csv("penguins.csv")
model = APSVMClassifier(calibrate="auto").fit(penguins.drop(columns="species"), penguins.species == "Chinstrap")
app = FastAPI()


@app.post("/score")
def score(rows: list[dict[str, Any]]) -> list[dict[str, float]]:
    frame = pd.DataFrame(rows, columns=model.feature_names_in_)
    values = zip(model.decision_function(frame), model.predict_proba(frame)[:, 1], strict=True)
    return [{"score": float(value), "probability": float(likely)} for value, likely in values]


@app.post("/first")
def first(rows: list[dict[str, Any]], top: int = 10) -> list[dict[str, Any]]:
    frame = pd.DataFrame(rows, columns=model.feature_names_in_)
    _, names, gave = model.explain(frame)
    best = (-model.decision_function(frame)).argsort(kind="stable")[:top]
    return [{"row": int(row), "because": names[gave[row].argmax()]} for row in best]


# %% [markdown]
# The routes are functions: what a request would get.

# %%
rows = penguins.drop(columns="species").astype(object).where(penguins.notna(), None).to_dict("records")
print(first(rows, top=3), score(rows[:1]))
