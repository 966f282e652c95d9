"""From a memory step on a card to the webhook: oomwatch beside an exporter with Prometheus and Alertmanager."""
