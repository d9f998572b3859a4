"""What commands show on stderr and write to stdout."""
