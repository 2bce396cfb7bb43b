"""The stream join: its call, operator and task. Imports nothing: workers need only the task."""
