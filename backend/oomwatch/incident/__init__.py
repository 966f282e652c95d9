"""What is written down when something has run out of memory: one report a run and moment, as JSON and as a page."""
