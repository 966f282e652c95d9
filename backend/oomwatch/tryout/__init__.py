"""Rules tried on what the database remembers, before they are put in force."""
