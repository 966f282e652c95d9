"""The pure core: what oomwatch knows of a fleet, and how it judges it. No clock, no I/O, no logging, no randomness."""
