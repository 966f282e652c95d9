"""The server's metrics, sent to other stores: Prometheus' remote write and OTLP. Off unless a setting says where.

Each sends, every so often, what /metrics has at that moment. One that fails costs its own samples and nothing else.
"""
