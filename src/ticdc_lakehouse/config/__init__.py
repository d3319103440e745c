"""What an operator writes: one YAML file a feed."""
