"""Memory of a training in bytes per row, without the rows: mostly score vectors; one too many shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

N = 600_000
#: What the tight bound was measured to hold, and less than one score vector more.
MOST = 54.0

TRAINING = f"""
import sys, threading, time
import numpy as np
from trainings import train_svm, training_set

def anonymous():
    return int(open("/proc/self/status").read().partition("RssAnon:")[2].split()[0]) * 1024

def watch():
    global most
    while True:
        most = max(most, anonymous())
        time.sleep(0.002)

rng = np.random.default_rng(1)
X = rng.standard_normal(({N}, 4), dtype=np.float32)
relevant = X[:, 0] + 0.5 * rng.standard_normal({N}, dtype=np.float32) > 2.2
warm = np.arange(0, {N}, 100)
train_svm(training_set(X[warm], relevant[warm]), "ap", C=1e4, bound="tight")
most = before = anonymous()
threading.Thread(target=watch, daemon=True).start()
trained = train_svm(training_set(X, relevant), "ap", C=1e5, bound="tight", max_iterations=6)
print((most - before) / {N}, [(stage.name, stage.solution.iterations) for stage in trained.stages])
"""


@pytest.mark.slow
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer's shadow is memory, too")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say what a process holds")
def test_four_score_vectors_at_most():
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "MALLOC_MMAP_THRESHOLD_": "1000000",  # what is freed is given back
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run([sys.executable, "-c", TRAINING], env=environment, capture_output=True, text=True, check=True)
    held, _, stages = done.stdout.partition(" ")
    assert "hinge" in stages or "train" in stages
    assert "tight" in stages
    assert 40.0 < float(held) <= MOST
