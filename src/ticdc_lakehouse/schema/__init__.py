"""Schema changes, pure: a DDL's text read (``read``), and what it makes of a table's definition (``change``)."""
