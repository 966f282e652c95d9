"""HTTP and WebSockets: `app` wires all parts together; `ingest` serves agents, `live` browsers, `api` programs."""
