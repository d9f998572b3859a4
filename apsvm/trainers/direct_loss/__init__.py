"""Direct loss minimisation by stochastic steps (``--loss direct(…)``)."""
