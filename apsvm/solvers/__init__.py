"""Minimise ½‖w‖² + C·risk(w); a solver sees only a function that returns (value, plane)."""
