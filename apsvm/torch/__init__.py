"""Exact rank losses for networks (the extra ``apsvm[torch]``)."""

from __future__ import annotations

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError("apsvm.torch needs PyTorch: pip install 'apsvm[torch]'") from error
