"""Launch scripts, read as text: words, variables and commands as a shell would see them. Nothing is run."""
