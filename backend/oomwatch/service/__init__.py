"""The server's heart: `service.Service` owns the engine and reads the clock; the other modules are its parts."""
