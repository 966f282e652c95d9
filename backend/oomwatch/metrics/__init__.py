"""The server's figures for Prometheus and its kin, computed from the fleet when they are asked for.

`family.py` says what a family of series is, and how many there can be of it; each other file is a room of families
(`gpus.py`, `runs.py`, ...); `page.py` lists the rooms. What is not known is not exported: a gap in a graph says more
than a 0. The page for people is docs/reference/metrics.md.
"""
