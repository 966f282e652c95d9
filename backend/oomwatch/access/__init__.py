"""Who may do what: tokens, and the audit log of what was done."""
