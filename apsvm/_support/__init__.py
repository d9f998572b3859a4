"""What every other part may use: names, files, times, threads, the log, checkpoints. Imports nothing above it."""
