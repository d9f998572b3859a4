"""Models: arrays and a header, stored in one file; reading a model runs no code."""
