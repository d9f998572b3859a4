"""Certificates verified by a second, plain implementation that shares nothing with the one that trains: no oracle, no
risk, no solver. ``apsvm verify`` is its command.

``plain`` has the losses and their hinges by definition, ``risk`` sums them over the queries, ``bound`` proves lower
bounds, ``exact`` has sums without rounding; these four are NumPy (and a QP solver that need not be believed), to be
read in one sitting. ``rows`` and
``certificates`` lead a model and a data set to them, through the package's own reading, feature maps and scalings.
"""
