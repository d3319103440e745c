"""What people run and read beside the pipeline: status, accounting, loading an export."""
