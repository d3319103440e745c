"""Operations: status, accounting, alarms, verification, loading an export."""
