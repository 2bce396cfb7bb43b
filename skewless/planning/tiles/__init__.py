"""Policies for maps of cells: what they know, what they propose, and how they search."""
