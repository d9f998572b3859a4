"""A user's own script sees the types."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

SCRIPT = """
import numpy as np
from apsvm import APSVMClassifier, APSVMRanker, RankNCG, WARPRanker

X, y, qid = np.zeros((2, 2)), np.array([0, 1]), ["a", "b"]
reveal_type(APSVMClassifier("ap", C=10).fit(X, y))
reveal_type(APSVMRanker().set_fit_request(qid=True).fit(X, y, qid=qid).decision_function(X))
reveal_type(RankNCG().fit(X, y).score(X, y, qid=qid))
reveal_type(WARPRanker.from_model(APSVMRanker().to_model()))
reveal_type(APSVMClassifier().fit(X, y).certificate_.gap)
APSVMClassifier(C=[10])
APSVMRanker().fit(X)
"""


def test_mypy_sees_the_types(tmp_path):
    mypy = Path(sys.executable).with_name("mypy")
    if not mypy.exists():
        pytest.skip("mypy is not installed beside this interpreter")
    (tmp_path / "script.py").write_text(SCRIPT)
    # Without this project's own settings: as a user who has installed it.
    options = ["--strict", "--config-file=", f"--cache-dir={os.devnull}", "--no-error-summary"]
    done = subprocess.run(
        [mypy, *options, f"--python-executable={sys.executable}", tmp_path / "script.py"],
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=tmp_path,
    )
    out = done.stdout
    assert (done.returncode, done.stderr) == (1, "")
    found = [line.partition(".py:")[2] for line in out.splitlines()]
    assert len(found) == 7, out
    for line, expected in zip(
        found,
        [
            '6: note: Revealed type is "apsvm.estimators.structured.APSVMClassifier"',
            '7: note: Revealed type is "numpy.ndarray[',
            '8: note: Revealed type is "float"',
            '9: note: Revealed type is "apsvm.estimators.warp.WARPRanker"',
            '10: note: Revealed type is "float"',
            '11: error: Argument "C" to "APSVMClassifier" has incompatible type',
            '12: error: Missing positional argument "y"',
        ],
        strict=True,
    ):
        assert line.replace("builtins.", "").startswith(expected), line


def test_the_types_are_shipped():
    assert files("apsvm").joinpath("py.typed").is_file()
