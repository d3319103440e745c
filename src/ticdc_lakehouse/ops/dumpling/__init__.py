"""Exports that Dumpling made of TiDB: the files of the folder, and each table's rows. `export` is the entry point."""
