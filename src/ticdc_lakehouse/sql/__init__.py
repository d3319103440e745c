"""SQL text made from table definitions: types, conversions, keys. No Spark session."""
