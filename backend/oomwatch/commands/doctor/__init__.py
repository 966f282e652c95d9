"""`oomwatch doctor` and `oomwatch template`: the commands for a training that is yet to be started."""
