"""Random DEFAULTs of every type: numbers, texts, times in many spellings, bytes. Many of them TiDB refuses."""

from __future__ import annotations

from random import Random

TYPES = (
    *("TINYINT", "SMALLINT", "INT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED", "BIT(1)", "BIT(8)", "BIT(20)"),
    *("BIT(64)", "DECIMAL(5,0)", "DECIMAL(10,2)", "DECIMAL(65,30)", "FLOAT", "DOUBLE", "FLOAT(8,2)", "DOUBLE(10,3)"),
    *("YEAR", "DATE", "DATETIME", "DATETIME(3)", "DATETIME(6)", "TIME", "TIME(2)", "TIME(6)", "TIMESTAMP"),
    *("TIMESTAMP(2)", "CHAR(6)", "VARCHAR(10)", "VARCHAR(40)", "BINARY(6)", "VARBINARY(10)", "VARBINARY(40)"),
    *("ENUM('a','B','1','3','é')", "SET('a','B','1','x y')"),
)
_TEXTS = (
    "",
    "a",
    "b",
    "B",
    "1",
    "3",
    "é",
    "É",
    "ß",
    "a,B",
    "B,a",
    "1,x y",
    "a ",
    " a",
    "A,A",
    "😀",
    "\\n",
    "''",
    "\\%",
)
_NUMBERS = ("0", "1", "69", "70", "1901", "2155", "101112", "20200102", "20240229", "20200102030405")


class RandomDefaults:
    """Gives one column definition with a DEFAULT after the other."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def column(self, name: str) -> str:
        """``c INT NOT NULL DEFAULT 5``."""
        choice = self.random.choice
        return f"{name} {choice(TYPES)}{choice(('', ' NOT NULL'))} DEFAULT {self.literal()}"

    def literal(self) -> str:
        """A literal as SQL writes it."""
        make = self.random.choice(
            (self._number, self._number, self._quoted_number, self._date, self._time, self._text, self._bytes)
        )
        return make()

    def _digits(self, most: int) -> str:
        return "".join(self.random.choice("0123456789") for _ in range(self.random.randint(1, most)))

    def _number(self) -> str:
        choice, below = self.random.choice, self.random.randrange
        number = choice(
            (
                str(below(300)),
                self._digits(20),
                f"{below(999)}.{self._digits(8)}",
                f"{below(99)}.5",
                f".{self._digits(3)}",
                f"{below(10)}e{below(34) - 8}",
                f"{below(99)}.5e0",
                choice(_NUMBERS),
            )
        )
        return choice(("", "", "-", "+")) + number

    def _quoted_number(self) -> str:
        return f"'{self._number()}'"

    def _date(self) -> str:
        choice, below = self.random.choice, self.random.randrange
        day = choice(
            (
                f"{1000 + below(9000)}-{1 + below(12):02}-{1 + below(28):02}",
                f"{1000 + below(1100)}-{1 + below(12)}-{1 + below(28)}",
                *("2020-02-29", "0000-00-00", "2020-00-00", "2020-12-00", "20-1-2", "2020.01.02", "20200102"),
            )
        )
        return f"'{day}{choice(('', ' ', 'T'))}{self._clock()}{choice(('',) * 6 + ('Z', '+08:00', ' '))}'"

    def _time(self) -> str:
        choice, below = self.random.choice, self.random.randrange
        days = choice(("", "", "", f"{below(30)} "))
        return f"'{choice(('', '-'))}{days}{choice((self._clock(), f'{below(900)}:00:01', self._digits(7)))}'"

    def _clock(self) -> str:
        choice, below = self.random.choice, self.random.randrange
        fraction = choice(("", "", f".{self._digits(9)}", ".999999", ".9999995"))
        hours, minutes, seconds = below(24), below(60), below(60)
        return choice(
            (
                *("", "23:59:59", "12:30", "5"),
                f"{hours:02}:{minutes:02}:{seconds:02}{fraction}",
                f"{hours}:{minutes}:{seconds}{fraction}",
                f"{hours}:{minutes}{fraction}",
            )
        )

    def _text(self) -> str:
        parts = self.random.randint(1, 3)
        return f"'{''.join(self.random.choice(_TEXTS) for _ in range(parts))}'"

    def _bytes(self) -> str:
        digits = self.random.choice(
            (self.random.randbytes(self.random.randint(1, 8)), "é😀aB1".encode(), b"2020-01-02")
        ).hex()
        bits = "".join(self.random.choice("01") for _ in range(self.random.randint(1, 20)))
        return self.random.choice((f"0x{digits}", f"x'{digits}'", f"b'{bits}'"))
