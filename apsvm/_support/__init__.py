"""Utilities for every other part: names, files, times, threads, the log. Imports nothing above it."""
