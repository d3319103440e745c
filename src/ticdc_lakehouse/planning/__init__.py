"""What a window does to each table, decided before anything is written: pure, no Spark."""
