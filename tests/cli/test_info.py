"""``apsvm info`` and the help pages."""

from __future__ import annotations

import json

import numpy as np
import pytest
from apsvm.cli.recipes.structured import ORACLE_CHOICES

import apsvm
from apsvm import load_model
from apsvm.losses import LOSSES
from apsvm.solvers.qp import BACKENDS


def test_info_tells_the_header(cancer, trained, run):
    model = trained(cancer)
    ranker = load_model(model)
    told = json.loads(run("info", model, "--json").stdout)
    weights = told.pop("weights")
    assert told == ranker.header
    assert weights["nonzero"] == np.count_nonzero(ranker.coef)
    assert weights["norm"] == pytest.approx(np.linalg.norm(ranker.coef))
    for key in ("loss", "oracle", "C", "epsilon", "bias", "seed", "state", "bound", "certificate", "data", "versions"):
        assert key in told
    assert told["data"]["rows"] == 569
    assert told["data"]["positives"] == 212
    assert told["versions"]["apsvm"] == apsvm.__version__


def test_info_as_text(cancer, trained, run):
    model = trained(cancer)
    shown = dict(line.split(None, 1) for line in run("info", model).stdout.splitlines())
    assert float(shown["certificate.primal"]) == load_model(model).header["certificate"]["primal"]
    assert (shown["state"], shown["data.file"]) == ("converged", "cancer.svm")
    assert run("info", "-", input=model.read_bytes(), text=False).stdout.decode() == run("info", model).stdout


HELP = {
    "": "train predict eval info export --version --help",
    "train": "[MODEL] --loss --oracle -C --epsilon --max-iterations --time-limit --qp --bias --keep-easy --zero-based "
    "--positive-label --max-features --threads --seed --log --quiet --verbose --dtype --sort-features --config",
    "predict": "DATA MODEL [OUT] --ignore-unknown --dtype --sort-features",
    "eval": "--model --scores --ap voc2007 voc2010 --at --ties pessimistic --positive-label --ignore-unknown --json",
    "export": "MODEL [OUT] --format liblinear svmlight",
    "info": "MODEL --json",
}


@pytest.mark.parametrize("name", HELP)
def test_help(name, run):
    done = run(*name.split(), "--help")
    assert done.stderr == ""
    assert not [word for word in HELP[name].split() if word not in done.stdout]


def test_the_help_of_train_lists_every_choice(run):
    shown = run("train", "-h").stdout
    for choices in (ORACLE_CHOICES, BACKENDS):
        assert f"[{'|'.join(choices)}]" in shown
    assert "|".join(LOSSES) in shown


def test_arguments_are_no_options_in_the_help_of_train(run):
    options = run("train", "-h").stdout.partition("Options:\n")[2]
    assert options.lstrip().startswith("--loss")


def test_version(run):
    assert run("--version").stdout == f"apsvm, version {apsvm.__version__}\n"
