"""Who may do what: tokens, people and the sessions of their browsers, and the audit log of what was done."""
