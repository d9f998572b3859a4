"""The working-set QP: one file a backend, one line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apsvm._support.registry import Registry

if TYPE_CHECKING:
    from apsvm.solvers.qp.base import Backend

BACKENDS: Registry[Backend] = Registry(
    "QP backend",
    {
        "auto": "apsvm.solvers.qp.auto:Auto",
        "active-set": "apsvm.solvers.qp.active_set:ActiveSet",
        "cvxpy": "apsvm.solvers.qp.cvxpy_clarabel:Cvxpy",
    },
)
