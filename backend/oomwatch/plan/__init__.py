"""What can be told of a run before it starts: what its settings mean, and what each release of verl makes of them."""
