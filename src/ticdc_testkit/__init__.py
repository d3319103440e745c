"""Test data: generated changefeeds, recorded streams, and the comparison of gold with TiDB's answers."""
