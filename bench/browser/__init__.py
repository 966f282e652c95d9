"""What the page costs in a browser: `python -m bench.browser`."""
