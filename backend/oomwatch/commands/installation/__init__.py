"""`oomwatch doctor --self`: whether an installation can do its work. Each file is a family of checks."""
