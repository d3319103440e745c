"""Benchmarks that stay: ``python -m bench [codec|silver|gold|memory …]``, or ``make bench``.

Every figure is a ratio to a yardstick of the same run, for machines differ and so do their days. They lie outside the
package: nothing on a cluster needs them. Results: docs/benchmarks.md.
"""
