"""``--scheduler``: the commands on a dask cluster."""
