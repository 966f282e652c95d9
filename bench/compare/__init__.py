"""What watching costs: the server of oomwatch beside exporters with Prometheus and Alertmanager, at the same load."""
