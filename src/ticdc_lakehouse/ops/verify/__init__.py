"""Comparison of live tables with TiDB itself, at the TSO that gold has published (docs/verification.md)."""
