"""Files of objects and detections, one file a format.

=======  =====================================  ==============================================
format   objects                                detections
=======  =====================================  ==============================================
VOC      folder of XML annotations              folder of ``comp3_det_test_CLASS.txt``, or one
                                                of them; or a folder with a file an image:
                                                ``class score xmin ymin xmax ymax``
COCO     JSON: images, annotations, categories  JSON: list of results
=======  =====================================  ==============================================
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apsvm.detection.base import Detections, Objects


def read_objects(path: str) -> Objects:
    """Read objects.

    Parameters
    ----------
    path : str
        A folder in VOC's format, or a file in COCO's.

    Raises
    ------
    DataError
        A fault in a file; the message names its place.
    OSError
        A file cannot be read.
    """
    from apsvm.detection.readers import coco, voc

    return voc.read_objects(path) if os.path.isdir(path) else coco.read_objects(path)


def read_detections(path: str, objects: Objects, class_names: str | None = None) -> Detections:
    """Read detections in the format of ``objects``. Raises as ``read_objects``.

    Parameters
    ----------
    path : str
        A file or a folder.
    objects : Objects
        Objects of the same images.
    class_names : str, optional
        For VOC, a file with a class name on each line; a class given as number n, from 0, is line n + 1.
    """
    from apsvm.detection.readers import coco, voc

    return coco.read_detections(path, objects) if objects.class_ids else voc.read_detections(path, objects, class_names)
