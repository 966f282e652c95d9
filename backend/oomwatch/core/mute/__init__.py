"""Why nobody is sent an alert for now: silences, maintenance windows, quiet hours, and what a graver alert covers."""
