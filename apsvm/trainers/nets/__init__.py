"""Networks trained with PyTorch (``--net``)."""
