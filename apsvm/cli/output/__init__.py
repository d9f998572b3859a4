"""Output of the commands: messages on stderr, results on stdout."""
