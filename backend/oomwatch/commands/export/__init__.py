"""`oomwatch export`: what a server has stored, as tables and as a trace."""
