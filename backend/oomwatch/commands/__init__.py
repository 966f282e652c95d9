"""The commands of `oomwatch` that have a room of their own; each is loaded when it is called."""
