"""Runs the bundle's jobs and notebooks on a laptop: the YAML as values, tasks in order, ``dbutils`` and ``display``."""
