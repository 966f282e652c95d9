"""Several servers that act as one, over PostgreSQL and NATS (decision 7). A server alone loads none."""
