"""What is drawn: one file a picture, one line here.

A picture is a dataclass of what it shows; ``of_…`` class methods make it from logs or results, and ``render`` and
``save`` (``pictures.base``) draw it as PNG or SVG in one style (``pictures.style``). matplotlib, the extra ``plot``, is
loaded when something is drawn.
"""

from __future__ import annotations

from apsvm.pictures.base import Picture
from apsvm.registry import Registry

PICTURES: Registry[Picture] = Registry(
    "picture",
    {
        "convergence": "apsvm.pictures.convergence:Convergence",
        "heatmap": "apsvm.pictures.heatmap:Heatmap",
        "pr": "apsvm.pictures.precision_recall:PrecisionRecall",
        "path": "apsvm.pictures.path:Path",
        "scaling": "apsvm.pictures.scaling:TimingsBySize",
        "shapes": "apsvm.pictures.shapes:Shapes",
        "histogram": "apsvm.pictures.histogram:Histogram",
    },
)
