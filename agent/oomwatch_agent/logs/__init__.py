"""PURE parsers: one line of a log in, wire event bodies out. No clock and no I/O; `reader.LineReader` is the way in."""
