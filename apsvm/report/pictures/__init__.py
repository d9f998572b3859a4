"""What is drawn: one file a picture, one line here.

A picture is a dataclass of what it shows; ``of_…`` class methods make it from logs or results, and ``render`` and
``save`` (``pictures.base``) draw it as PNG or SVG in one style (``pictures.style``). matplotlib, the extra ``plot``, is
loaded when something is drawn.
"""

from __future__ import annotations

from apsvm._support.registry import Registry
from apsvm.report.pictures.base import Picture

PICTURES: Registry[Picture] = Registry(
    "picture",
    {
        "convergence": "apsvm.report.pictures.convergence:Convergence",
        "heatmap": "apsvm.report.pictures.heatmap:Heatmap",
        "pr": "apsvm.report.pictures.precision_recall:PrecisionRecall",
        "path": "apsvm.report.pictures.path:Path",
        "scaling": "apsvm.report.pictures.scaling:TimingsBySize",
        "shapes": "apsvm.report.pictures.shapes:Shapes",
        "histogram": "apsvm.report.pictures.histogram:Histogram",
    },
)
