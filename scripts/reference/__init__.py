"""Pages of docs/reference that are made from the code: `python -m scripts.reference` writes them anew."""
