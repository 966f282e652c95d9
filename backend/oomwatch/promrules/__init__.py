"""alerts.yaml as a rule file for Prometheus, whose rules fire on oomwatch's own metrics.

`kinds.py` says in PromQL what each kind of condition means; `where.py` makes matchers of overrides; `words.py` makes
templates of texts; `rulefile.py` puts groups and rules together. What is lost on the way is told in
docs/howto/prometheus-rules.md.
"""
