"""What ``apsvm train`` shows on stderr: progress lines while it works, and a summary at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apsvm.cli.shared import say

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.trainers.structured_svm import Progress, Trained


def show_summary(
    dataset: Dataset, relevant: Any, ranker: Any, trained: Trained, read_seconds: float, seconds: float
) -> None:
    """Why it stopped, the certificate, the training AP, and where the time went; ``seconds`` include the reading."""
    from apsvm.metrics.evaluate import evaluate

    bounds = trained.solution.certificate
    sign = "≤" if bounds.reached else ">"
    kind = "exact" if trained.exact else "approximate: a bound for the difficult rows' problem, not for the whole loss"
    iterations = sum(stage.solution.iterations for stage in trained.stages)
    say(f"{trained.state} after {iterations} iterations")
    for note in trained.notes:
        say(note)
    say(
        f"certificate: primal {bounds.primal:.6g}, dual {bounds.dual:.6g}, gap {bounds.gap:.3g} {sign} "
        f"{bounds.tolerance:.3g} asked for ({kind})"
    )
    if trained.queries_skipped:
        say(f"{trained.queries_skipped} queries without both classes were left out, {trained.queries} trained on")
    fallbacks = sum(stage.qp_fallbacks for stage in trained.stages)
    if fallbacks:
        say(f"{fallbacks} working-set QPs fell back to cvxpy")
    grouped = dataset.groups is not None and trained.queries > 1
    result = evaluate(["AP"], ranker.score(dataset.X), relevant, groups=dataset.groups if grouped else None)
    mean = f", mean of {result.n_groups - result.groups_skipped} queries" if grouped else ""
    say(f"training AP {result.values['AP']:.6f} ({result.n_positives} of {result.n_rows} rows positive{mean})")
    parts = {"reading": read_seconds}
    for stage in trained.stages:
        for part, span in stage.spans.items():
            parts[part] = parts.get(part, 0.0) + span.wall_ns / 1e9
    parts["other"] = max(0.0, seconds - sum(parts.values()))
    say(f"{seconds:.2f} s: " + ", ".join(f"{part} {taken:.2f}" for part, taken in parts.items()))


class Display:
    """Fixed-width lines on stderr, the same on a terminal and in a pipe: the first ten iterations of a stage, then
    every tenth, from 200 on every fiftieth, and the last; all of them if ``verbose``."""

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        self._stage: tuple[str, float] | None = None
        self._unshown: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        if (progress.stage, progress.C) != self._stage:
            self.finish()
            self._stage = progress.stage, progress.C
            columns = f"{'iter':>6} {'primal':>14} {'dual':>14} {'gap':>11} {'planes':>7} {'seconds':>9}"
            say(f" {columns}  {progress.stage} C={progress.C:g}")
        i = progress.iteration
        self._unshown = progress
        if self._verbose or i <= 10 or (i <= 200 and i % 10 == 0) or i % 50 == 0:
            self.finish()

    def finish(self) -> None:
        """Shows the last iteration, if it has not been."""
        progress = self._unshown
        if progress is None:
            return
        self._unshown = None
        say(
            f" {progress.iteration:>6d} {progress.primal:>14.7g} {progress.dual:>14.7g} {progress.gap:>11.4g} "
            f"{progress.planes:>7d} {progress.seconds:>9.2f}"
        )


def silent(progress: Progress) -> None:
    pass
