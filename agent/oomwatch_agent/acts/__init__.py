"""Before it dies: what the agent does because of a critical alert, as far as its own settings allow it.

`desk` takes what the server asks for, `permit` says what is allowed, `cabinet` keeps the files. Each act is a file of
its own: `snapshot`, `stacks`, `hook`.
"""
