"""Silver: messages decoded into one events table per feed."""
