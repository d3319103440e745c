"""Gold: TiDB's tables as they were at a published watermark."""
