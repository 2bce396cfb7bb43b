"""The stream join: its call, its operator, its task. Imports nothing: workers need only the task."""
