"""Evaluation of detections: boxes with a class and a score against the objects of images.

    objects, detections → joined (one numbering of images and classes) → matching (which detection finds which object)
        → measure (AP of every class) → bootstrap over the images

``boxes`` has what stands alone: IoU, non-maximum suppression, boxes from a file. ``readers`` has one file a format,
``writers`` what they read back. Boxes are (xmin, ymin, xmax, ymax) everywhere but in COCO's files. numpy only;
of apsvm it imports ``metrics``, and of ``data`` the error.
"""

#: How IoU counts the sides of boxes: max − min + 1, or max − min (``boxes``).
CONVENTIONS = ("inclusive", "continuous")
#: Detections of equal score: in the order given, or as one step of the ranking.
TIE_RULES = ("stable", "block")
#: How files are written (``readers``).
FORMATS = ("voc", "coco", "text", "csv")
