"""Bronze: every Kafka message of a feed, byte for byte."""
