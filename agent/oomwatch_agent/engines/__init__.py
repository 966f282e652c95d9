"""What rollout engines say of themselves on their metrics pages."""
