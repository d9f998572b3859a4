"""Pictures, one file each.

A picture is a dataclass of what it shows; ``of_…`` class methods make it from logs or results, and ``render`` and
``save`` (``pictures.base``) draw it as PNG or SVG in one style (``pictures.style``). matplotlib, the extra ``plot``, is
loaded when something is drawn.
"""
