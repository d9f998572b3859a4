"""Completion of the shell, requested as bash does."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from click.shell_completion import BashComplete

from apsvm.cli import program
from apsvm.metrics import parse_metric
from apsvm.trainers import trainer_of


def completed(line):
    """completed("apsvm train --lo") → the answers (kind, word), by what the script calls."""
    _, *before, incomplete = line.split(" ")
    shell = BashComplete(program, {}, "apsvm", "_APSVM_COMPLETE")
    return [(item.type, item.value) for item in shell.get_completions(before, incomplete)]


def words(answers):
    assert {kind for kind, _ in answers} <= {"plain"}
    return [word for _, word in answers]


def test_commands_and_options():
    assert words(completed("apsvm pl")) == ["plot"]
    assert words(completed("apsvm plot h")) == ["heatmap"]
    assert words(completed("apsvm train --log-")) == ["--log-ranks"]
    assert words(completed("apsvm train --bound t")) == ["tight"]
    assert words(completed("apsvm train --oracle se")) == ["search", "select", "search-select"]


def test_losses():
    found = words(completed("apsvm train --loss "))
    assert {"ap", "ndcg@10", "rbp(0.8)", "wmw", "warp", "f(0.5)"} <= set(found)
    for loss in found:
        trainer_of(loss)
    assert words(completed("apsvm cv data --loss ap,M")) == ["ap,mrr"]


def test_metrics():
    found = words(completed("apsvm eval -m "))
    assert {"AP", "nDCG@10", "RBP(0.8)", "F1"} <= set(found)
    assert [parse_metric(name).name for name in found] == found
    assert words(completed("apsvm cv --metric ndcg@")) == ["nDCG@10"]


@pytest.mark.parametrize(
    "line",
    [
        "apsvm train da",
        "apsvm eval-detections o",
        "apsvm eval --model m",
        "apsvm plot pr x -o p",
        "apsvm report r",
        "apsvm train x --log l",
    ],
)
def test_files(line):
    assert completed(line) == [("file", line.split(" ")[-1])]


@pytest.mark.slow
def test_in_bash(command, environment):
    """The script that is sourced, as the README says, and its function called as bash calls it."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    program = """
        eval "$(_APSVM_COMPLETE=bash_source apsvm)" && complete -p apsvm
        COMP_WORDS=(apsvm train --loss ndcg-) COMP_CWORD=3
        _apsvm_completion apsvm
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    path = os.pathsep.join([os.path.dirname(command[0]), os.environ["PATH"]])
    env = environment({"PATH": path})
    done = subprocess.run([bash, "-c", program], capture_output=True, text=True, check=True, timeout=60, env=env)
    assert done.stdout.splitlines() == ["complete -o nosort -F _apsvm_completion apsvm", "ndcg-chakrabarti"]
