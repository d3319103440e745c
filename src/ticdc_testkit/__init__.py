"""What tests and demos stand on: made-up changefeeds, recorded streams, the comparison of gold with TiDB's answers."""
