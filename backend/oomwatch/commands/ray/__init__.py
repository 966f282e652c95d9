"""Agents on every node of a Ray cluster: `within` is what runs there, all else is this side."""
