"""What every other part may use: names, files, times, threads, the log. Imports nothing above it."""
