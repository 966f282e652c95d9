"""Accelerators of every maker, each by the libraries and programs that tell of it."""
