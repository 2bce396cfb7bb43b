"""Drawings that several parts of the lab share."""
