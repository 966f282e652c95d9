"""The ear for probes within the trainer's processes (oomwatch_probe is the mouth)."""
