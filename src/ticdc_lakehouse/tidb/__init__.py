"""The changefeed's running TiDB: sessions at one TSO, and the texts of its values."""
