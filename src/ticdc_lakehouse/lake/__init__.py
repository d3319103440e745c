"""The three layers on Spark and Delta. The session is an argument; nothing here knows widgets or YAML."""
