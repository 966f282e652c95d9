"""The server's database: transitions first, then what the agents read and said. `store.Store` is the way in."""
