"""Key-table planners: a few keys get an instance of their own choosing, the hash keeps the rest."""
