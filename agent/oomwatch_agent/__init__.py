"""The oomwatch agent: reads what one node's GPUs, host and training logs say, and streams it to the server."""
