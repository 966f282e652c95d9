"""Changing a rule file by program: its text is edited in place, so that comments and layout stay as they were."""
