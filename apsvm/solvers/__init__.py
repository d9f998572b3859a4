"""Minimise ½‖w‖² + C·risk(w). A solver sees the risk as a function of scores (``score_space.ScoreFunction``)."""
