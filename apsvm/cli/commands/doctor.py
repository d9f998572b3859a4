"""``apsvm doctor``: what this installation is made of, and whether it computes what it should."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping

import click

from apsvm._support.machine import available_memory, memory, thread_count
from apsvm._support.types import JsonDict
from apsvm.cli.shared import INTERNAL, put

#: Packages that are needed, and what of the extras is there.
NEEDED = ("numpy", "scipy", "scikit-learn", "click", "cvxpy", "clarabel", "joblib", "threadpoolctl", "pyarrow")
OPTIONAL = {"matplotlib": "plot", "torch": "torch", "onnx": "onnx", "distributed": "dask"}
SEED = 20260712


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
def doctor(as_json: bool) -> int:
    """Print versions, compiler, SIMD, threads, BLAS and memory, and check the compiled core.

    It is compared with brute force, numpy and another QP solver on small cases. Ends with code 1 if a check fails.
    """
    result = {"versions": _versions(), "native core": _native(), "machine": _machine(), "BLAS": _blas()}
    checks = dict(_checked())
    if as_json:
        put(json.dumps({**result, "checks": checks}, indent=1))
    else:
        for title, facts in result.items():
            put(title)
            _put(facts)
        put("checks")
        _put({name: f"{'ok' if check['ok'] else 'FAILED'}: {check['found']}" for name, check in checks.items()})
    return 0 if all(check["ok"] for check in checks.values()) else INTERNAL


def _put(facts: Mapping[str, object]) -> None:
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        put(f"  {name.ljust(width)}  {value}")


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    from apsvm import __version__

    result = {"apsvm": __version__, "Python": f"{platform.python_version()} ({sys.executable})"}
    for name in (*NEEDED, *OPTIONAL):
        try:
            result[name] = version(name)
        except PackageNotFoundError:
            extra = OPTIONAL.get(name)
            result[name] = "missing" if extra is None else f"not installed: pip install 'apsvm[{extra}]'"
    try:
        import cvxpy
    except ImportError as error:
        result["QP solvers of cvxpy"] = f"none: {error}"
    else:
        result["QP solvers of cvxpy"] = ", ".join(cvxpy.installed_solvers())
    return result


def _native() -> dict[str, str]:
    """How the extension was compiled, and which clones of its kernels run here."""
    try:
        from apsvm._native import _kernels
    except ImportError as error:
        return {"file": f"missing: {error}"}
    info = _kernels.build_info()
    return {
        "file": str(_kernels.__file__),
        "compiler": str(info["compiler"]).strip(),
        "C++ standard": f"__cplusplus = {info['standard']}",
        "SIMD": f"{info['clone']}, of the clones {info['clones']}, which give the same bits",
    }


def _machine() -> dict[str, str]:
    left = available_memory()
    available = "" if left is None else f", {left / 2**30:.1f} available"
    return {
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "cores": f"{os.cpu_count()}, of which this process may use {thread_count(0)} (--threads 0)",
        "memory": f"{memory() / 2**30:.1f} GiB{available}",
    }


def _blas() -> dict[str, str]:
    """The thread pools of the libraries that are loaded; apsvm itself asks BLAS for one thread."""
    try:
        import numpy  # noqa: F401
        import scipy.linalg  # noqa: F401
        from threadpoolctl import threadpool_info
    except ImportError as error:
        return {"missing": str(error)}
    result = {}
    for pool in threadpool_info():
        name = f"{pool['internal_api']} of {os.path.basename(os.path.dirname(pool['filepath']))}"
        kernels = f", {pool['architecture']}" if pool.get("architecture") else ""
        result[name] = f"{pool.get('version') or 'unknown version'}{kernels}, {pool['num_threads']} threads"
    return result or {"none": "no thread pool is loaded"}


def _checked() -> Iterator[tuple[str, JsonDict]]:
    for name, check in CHECKS.items():
        try:
            ok, result = check()
        except Exception as error:  # whatever is broken is to be told, and the other checks made
            ok, result = False, f"{type(error).__name__}: {error}"
        yield name, {"ok": bool(ok), "found": result}


def _agrees_with_brute_force() -> tuple[bool, str]:
    """Values and row weights, on tiny queries with ties, of every loss over rankings with two arrays."""
    import numpy as np

    from apsvm.losses import make_loss
    from apsvm.oracles import make_oracle

    rng = np.random.default_rng(SEED)
    worst, cases = 0.0, 0
    for loss_name in ("ap", "auc", "ndcg", "mrr"):
        loss = make_loss(loss_name)
        for _ in range(20):
            n_pos, n_neg = rng.integers(1, 5, size=2).tolist()
            scores = rng.integers(-3, 4, size=n_pos + n_neg) / 8.0
            values = []
            for name in ("brute-force", "auto"):
                bound = make_oracle(name, loss).bind(loss, n_pos, n_neg)
                c = np.empty(scores.size)
                result = bound(scores[:n_pos], scores[n_pos:], c[:n_pos], c[n_pos:])
                values += [result.value, result.loss + float(c @ scores)]
            worst = max(worst, max(values) - min(values))
            cases += 1
    return worst < 1e-12, f"{cases} queries of ap, auc, ndcg and mrr, largest difference {worst:.1e}"


def _oracles_agree() -> tuple[bool, str]:
    """One objective, whichever oracle."""
    import numpy as np

    from apsvm.losses import make_loss
    from apsvm.oracles import make_oracle, serving

    rng = np.random.default_rng(SEED)
    scores_pos, scores_neg = rng.normal(size=300) + 1.0, rng.normal(size=5000)
    loss = make_loss("ap")
    names = [name for name in serving(loss) if name != "brute-force"]
    values = []
    for name in names:
        bound = make_oracle(name, loss).bind(loss, 300, 5000)
        values.append(bound(scores_pos, scores_neg, np.empty(300), np.empty(5000)).value)
    spread = (max(values) - min(values)) / max(values)
    return spread < 1e-9, f"{', '.join(names)}: relative difference {spread:.1e}"


def _rows_agree() -> tuple[bool, str]:
    """X·w and Xᵀc against numpy's, sparse and dense, one thread and all of them."""
    import numpy as np
    import scipy.sparse as sp

    from apsvm.data.rows import Rows

    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(500, 40)) * (rng.random(size=(500, 40)) < 0.3)
    w, c = rng.normal(size=40), rng.normal(size=500)
    worst = 0.0
    for matrix in (X, sp.csr_array(X)):
        for threads in (1, thread_count(0)):
            rows = Rows(matrix, threads=threads)
            worst = max(worst, np.abs(rows.scores(w) - X @ w).max(), np.abs(rows.combine(c) - X.T @ c).max())
    return worst < 1e-10, f"sparse and dense, largest difference {worst:.1e}"


def _qp_agrees() -> tuple[bool, str]:
    """A working-set QP by the native solver and by cvxpy."""
    import numpy as np

    from apsvm.solvers.qp import BACKENDS
    from apsvm.solvers.qp.base import Problem

    rng = np.random.default_rng(SEED)
    planes = rng.normal(size=(12, 5))
    problem = Problem(planes @ planes.T, rng.random(12), np.ones(12, dtype=np.bool_), 3.0)
    objectives = []
    for name in ("active-set", "cvxpy"):
        alpha = BACKENDS[name]().solve(problem, np.zeros(12), 1e-7).alpha
        objectives.append(float(problem.offsets @ alpha - 0.5 * alpha @ problem.gram @ alpha))
    spread = abs(objectives[0] - objectives[1])
    return spread < 1e-5, f"active-set and cvxpy (Clarabel), difference {spread:.1e}"


def _training_is_certified() -> tuple[bool, str]:
    """A small training from text to a certificate, the text read by the native parser."""
    import io

    import numpy as np

    from apsvm.data.labels import Takes, decide
    from apsvm.data.rows import Rows
    from apsvm.data.svmlight import read_svmlight
    from apsvm.trainers.base import TrainingSet, Watch
    from apsvm.trainers.structured_svm.settings import StructuredSettings
    from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(80, 3))
    labels = np.where(X[:, 0] + 0.5 * rng.normal(size=80) > 0.8, 1, -1)
    lines = (
        f"{label} " + " ".join(f"{j}:{value!r}" for j, value in enumerate(row, 1))
        for label, row in zip(labels.tolist(), X.tolist(), strict=True)
    )
    data = read_svmlight(io.BytesIO("\n".join(lines).encode()))
    if not np.array_equal(data.X.toarray(), X):
        return False, "the text was not read as it was written"
    training_set = TrainingSet(Rows(data.X), decide(data, Takes.TWO_CLASSES))
    (outcome,) = StructuredSVMTrainer("ap", StructuredSettings(C=(10.0,), bound="hinge")).train(training_set, Watch())
    bounds = outcome.certificate
    assert bounds is not None
    return bounds.reached, f"80 rows, primal {bounds.primal:.6g}, gap {bounds.gap:.2g} ≤ {bounds.tolerance:.2g}"


def _packages_are_there() -> tuple[bool, str]:
    from importlib.metadata import PackageNotFoundError, version

    missing = []
    for name in NEEDED:
        try:
            version(name)
        except PackageNotFoundError:
            missing.append(name)
    return not missing, f"missing: {', '.join(missing)}" if missing else "all that are needed"


CHECKS: Mapping[str, Callable[[], tuple[bool, str]]] = {
    "packages": _packages_are_there,
    "compiled core = brute force": _agrees_with_brute_force,
    "oracles agree": _oracles_agree,
    "row products = numpy": _rows_agree,
    "QP solvers agree": _qp_agrees,
    "training is certified": _training_is_certified,
}
