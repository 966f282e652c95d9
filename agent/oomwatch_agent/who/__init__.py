"""Who is who: from a process to its GPU, its run, its rank and its role."""
