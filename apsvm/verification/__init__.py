"""Verification of certificates by a second, plain implementation. It shares no oracle, risk or solver with training.
``apsvm verify`` is its command.

``plain`` defines the losses and their hinges, ``risk`` sums them over the queries, ``bound`` proves lower bounds, and
``exact`` sums without rounding. These four use NumPy only, and a QP solver that need not be trusted. ``rows`` and
``certificates`` apply them to a model and a data set, with the package's own reading, feature maps and scalings.
"""
