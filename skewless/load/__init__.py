"""What is measured, and how it becomes load."""
