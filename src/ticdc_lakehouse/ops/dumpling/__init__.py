"""Exports that Dumpling made of TiDB: what lies in the folder, and each table's rows. `export` is the way in."""
