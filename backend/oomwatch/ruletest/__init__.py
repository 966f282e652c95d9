"""Tests of rules as YAML, in the form of promtool's: readings that come in, and the alerts that must fire when."""
