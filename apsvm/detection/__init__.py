"""Evaluation of detections: boxes with a class and a score against the objects of images.

    objects, detections → matching (detections to objects) → measure (AP of every class)

``boxes`` has IoU, non-maximum suppression and a reader of boxes. ``readers`` has one file for each format, and
``writers`` writes the same formats. Boxes are (xmin, ymin, xmax, ymax), except in COCO's files. It needs numpy,
``apsvm.metrics`` and the error of ``apsvm.data``.
"""
