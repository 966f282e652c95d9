"""Telling people of alerts: what is said (grouping, words), to whom (a class a channel), and until it arrived."""
