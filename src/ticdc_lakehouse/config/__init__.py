"""Feed files: one YAML file per changefeed, checked whole."""
