"""The running TiDB that a changefeed is of: sessions at one TSO, and the texts of its values."""
