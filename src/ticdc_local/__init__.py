"""Runs the bundle's jobs on a laptop: Java, jars, Spark session, Kafka broker, runner."""
