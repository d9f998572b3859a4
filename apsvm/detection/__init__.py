"""Evaluation of detections: boxes with a class and a score against the objects of images.

    objects, detections → matching (which detection finds which object) → measure (AP of every class)

``boxes`` has what stands alone: IoU, non-maximum suppression, boxes from a file. ``readers`` has one file a format,
``writers`` what they read back. Boxes are (xmin, ymin, xmax, ymax) everywhere but in COCO's files. numpy only;
of apsvm it imports ``metrics``, and of ``data`` the error.
"""
