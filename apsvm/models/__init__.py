"""What a training leaves: arrays and a header, which is all that a file holds; reading one runs no code."""
