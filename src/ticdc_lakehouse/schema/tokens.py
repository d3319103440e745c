"""SQL texts as tokens, one statement at a time, read from left to right. The words of an executed comment
(``/*T! … */``, ``/*!50003 … */``) are tokens too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, auto
from itertools import pairwise
from typing import ClassVar

from sqlglot import tokenize
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]  # from its compiled half, not re-exported

from ticdc_codec.errors import LakehouseError
from ticdc_codec.mysql_type import may_be_two
from ticdc_lakehouse.schema.names import TableName

_STRING = r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"|`[^`]*+`"
_RESTORED_STRING = r"'[^']*+'|\"[^\"]*+\"|`[^`]*+`"


def _executed_in(string: str) -> re.Pattern[str]:
    """Returns the pattern of strings, comments, and comments whose words count."""
    return re.compile(
        rf"{string}|(?:--\s|\#)[^\n]*|(?P<opening>/\*(?:T!(?:\[[^\]]*\])?|!\d*))"
        rf"(?P<inside>(?:{string}|(?!\*/).)*+)\*/|/\*.*?\*/",
        re.DOTALL,
    )


def _statement_in(string: str) -> re.Pattern[str]:
    """Returns the pattern of a statement with its semicolon."""
    return re.compile(rf"(?:{string}|(?:--\s|\#)[^\n]*|/\*.*?\*/|[^;])*+;?", re.DOTALL)


_EXECUTED, _EXECUTED_RESTORED = _executed_in(_STRING), _executed_in(_RESTORED_STRING)
_STATEMENT, _STATEMENT_RESTORED = _statement_in(_STRING), _statement_in(_RESTORED_STRING)
_ESCAPED = {quote: re.compile(rf"\\(.)|{quote * 2}", re.DOTALL) for quote in "'\""}
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_NAME = re.compile(r"[\w$]+")
_HOW_TO_WRITE = (
    "names in ENUM and SET that TiDB prints clearly",
    r"\n, \r or \0, which may be one character or two: write the name in double quotes, with MySQL's escapes",
)
_STRINGS = (TokenType.STRING, TokenType.NATIONAL_STRING)
_QUOTED = (TokenType.IDENTIFIER, *_STRINGS)
_NO_WORDS = frozenset((*_QUOTED, TokenType.NUMBER, TokenType.HEX_STRING, TokenType.BIT_STRING))


class _TiDB(MySQL):
    """sqlglot's MySQL with one word a token: none joined (``PRIMARY KEY``), no rest left unread (``RENAME …``)."""

    class Tokenizer(MySQL.Tokenizer):
        COMMANDS: ClassVar = set()
        KEYWORDS: ClassVar = {word: kind for word, kind in MySQL.Tokenizer.KEYWORDS.items() if " " not in word}


class _Restored(_TiDB):
    """The dialect with a backslash that is like any other character."""

    class Tokenizer(_TiDB.Tokenizer):
        STRING_ESCAPES: ClassVar = ["'", '"']


class Author(Enum):
    """Origin of a DDL text; decides how a backslash in a string is read."""

    PERSON = auto()
    """A backslash escapes in every string."""
    PARSER = auto()
    """TiDB's parser, which writes a DDL anew for TiCDC (``Restore``): quotes are doubled in strings, backslashes stand
    for themselves in comments, ENUMs and SETs, and are doubled in DEFAULTs."""
    SHOW_CREATE = auto()
    """TiDB's SHOW CREATE TABLE: the same, but comments have escapes, too, and in ENUMs and SETs a line end is ``\\n``,
    as a backslash before an n is."""


class UnreadableError(LakehouseError):
    """A text that is not understood. Never leaves this package: it becomes Unread, or a ConfigError with the line."""

    def __init__(self, wanted: str, found: str, line: int) -> None:
        super().__init__(f"expected {wanted}, found {found}")
        self.line = line


class AmbiguousError(UnreadableError):
    """A text that may mean either of two things, whoever wrote it."""


def statements(text: str, author: Author = Author.PERSON) -> list[Tokens]:
    """Returns the statements of a text, without the semicolons and empty ones. Raises UnreadableError for what is no
    SQL."""
    escapes = author is Author.PERSON
    plain = (_EXECUTED if escapes else _EXECUTED_RESTORED).sub(_executed, text)
    try:
        tokens = tokenize(plain, read=_TiDB if escapes else _Restored)
    except TokenError:
        raise UnreadableError("SQL", "text that does not split into words and strings", 1) from None
    ends = [i for i, token in enumerate(tokens) if token.token_type is TokenType.SEMICOLON]
    parts = [tokens[start:end] for start, end in zip([0, *(i + 1 for i in ends)], [*ends, len(tokens)], strict=True)]
    return [Tokens(part, [_word(token) for token in part], plain, author) for part in parts if part]


def _word(token: Token) -> str:
    """Returns a token in capitals if it is no quoted name and no literal, else an empty text."""
    return "" if token.token_type in _NO_WORDS else token.text.upper()


def statement_at(text: str, at: int, author: Author) -> str:
    """Returns the statement that begins there, with its semicolon."""
    match = (_STATEMENT if author is Author.PERSON else _STATEMENT_RESTORED).match(text, at)
    assert match is not None  # it may be empty
    return match[0]


def is_hand_written(text: str) -> bool:
    """True if a text certainly is as people wrote it: TiDB's parser writes words in capitals, every table's name in
    backquotes, no string in double quotes and no backslash outside of quotes."""
    plain = _EXECUTED_RESTORED.sub(_executed, text)
    try:
        tokens = tokenize(plain, read=_Restored)
    except TokenError:
        return True
    verb_is_hand_written = any(token.text != token.text.upper() for token in tokens[:1])
    return verb_is_hand_written or any(_is_hand_written(word, token, plain) for word, token in pairwise(tokens))


def _is_hand_written(word: Token, token: Token, text: str) -> bool:
    """True if a token certainly is as people write it; ``token`` follows ``word``."""
    if token.token_type in _STRINGS:
        return text[token.end] == '"'
    bare = token.token_type is not TokenType.IDENTIFIER
    return bare and (
        "\\" in token.text or (word.token_type not in _QUOTED and word.text == "TABLE" and token.text != "IF")
    )


def _executed(match: re.Match[str]) -> str:
    """Returns ``/*T![feature] words */`` and ``/*!50100 words */`` as what TiDB takes them for: the words, at their
    place."""
    opening = match["opening"]
    return match[0] if opening is None else f"{' ' * len(opening)}{match['inside']}  "


class Tokens:
    """Tokens of one statement, or of a part of one, and how far they are read."""

    def __init__(self, tokens: Sequence[Token], words: Sequence[str], text: str, author: Author) -> None:
        self._tokens = tokens
        self._words = words  # one for each token, as `word` returns it
        self._text = text
        self._author = author
        self.at = 0

    @property
    def ended(self) -> bool:
        """True if all is read."""
        return self.at >= len(self._tokens)

    def word(self, ahead: int = 0) -> str:
        """Returns the next token in capitals if it is no quoted name and no literal, else an empty text."""
        at = self.at + ahead
        return self._words[at] if at < len(self._words) else ""

    def take(self, *words: str) -> bool:
        """True if these words come next, which are then passed."""
        found = self.comes(*words)
        self.at += len(words) if found else 0
        return found

    def take_any(self, *words: str) -> str:
        """Returns the next word if it is one of these, which is then passed; else an empty text."""
        word = self.word()
        return word if word in words and self.take(word) else ""

    def expect(self, *words: str) -> None:
        """Passes these words. Raises UnreadableError if others come next."""
        if not self.take(*words):
            raise self.unreadable(" ".join(words), len(words))

    def expect_end(self) -> None:
        """Raises UnreadableError if there is more."""
        if not self.ended:
            raise self.unreadable("the end of the statement")

    def skip(self) -> None:
        """Passes one token, with all that stands in it if it opens brackets."""
        if self.word() == "(":
            self.brackets()
        elif self.ended:
            raise self.unreadable("more")
        else:
            self.at += 1

    def comes(self, *words: str) -> bool:
        """True if these words come next."""
        return all(self.word(ahead) == word for ahead, word in enumerate(words))

    def skip_until(self, *words: str) -> None:
        """Passes everything before the first of these words that stands outside of brackets, or all."""
        while not self.ended and self.word() not in words:
            self.skip()

    def name(self) -> str:
        """Passes a name, quoted or not. An empty one is none: TiCDC may not know a table's old name (ticdc#4392)."""
        if self.ended:
            raise self.unreadable("a name")
        token = self._tokens[self.at]
        if token.token_type is TokenType.IDENTIFIER and (quoted := self._raw(token)[1:-1]):
            self.at += 1
            return quoted.replace("``", "`")
        if not self.word() or not _NAME.fullmatch(token.text):
            raise self.unreadable("a name")
        self.at += 1
        return token.text

    def column_name(self) -> str:
        """Passes a column's name, before which its table's and its database's may stand."""
        name = self.name()
        while self.take("."):
            name = self.name()
        return name

    def names(self) -> tuple[str, ...]:
        """Passes names with commas between them."""
        found = [self.name()]
        while self.take(","):
            found.append(self.name())
        return tuple(found)

    def table_name(self, database: str | None) -> TableName:
        """Passes ``table`` or ``database.table``; ``database`` is that of an unqualified name."""
        first = self.name()
        if self.take("."):
            return TableName(first, self.name())
        if database is None:
            self.at -= 1
            raise self.unreadable("a table name with its database (`db`.`table`, or USE before it)")
        return TableName(database, first)

    def brackets(self) -> Tokens:
        """Passes ``( … )`` and returns what is inside."""
        self.expect("(")
        start, depth = self.at, 1
        while depth and not self.ended:
            word = self._words[self.at]
            depth += (word == "(") - (word == ")")
            self.at += 1
        if depth:
            raise self.unreadable("as many ) as (")
        return self._part(start, self.at - 1)

    def parts(self) -> list[Tokens]:
        """Returns what is left, split at the commas outside of brackets."""
        found: list[Tokens] = []
        while not self.ended:
            start = self.at
            self.skip_until(",")
            found.append(self._part(start, self.at))
            self.take(",")
        return found

    def text_from(self, start: int) -> str:
        """Returns the SQL text from the token number ``start`` up to here."""
        return self._text[self._tokens[start].start : self._tokens[self.at - 1].end + 1]

    def words_from(self, start: int) -> str:
        """Returns the SQL text from the token number ``start`` up to here, a space in the place of each comment."""
        words, text = self._tokens[start : self.at], self._raw(self._tokens[start])
        for before, token in pairwise(words):
            between = self._text[before.end + 1 : token.start]
            text += (" " if between.strip() else between) + self._raw(token)
        return text

    def string(self) -> str | None:
        """Passes string literals that follow one another and returns their value; None if none comes next."""
        found: list[str] = []
        while not self.ended and self._tokens[self.at].token_type in _STRINGS:
            quote, inside = self._quoted()
            found.append(_ESCAPED[quote].sub(_unescaped, inside))
            self.at += 1
        return "".join(found) if found else None

    def element(self) -> str:
        """Passes a name of an ENUM or SET, from whose end MySQL takes the spaces. Raises UnreadableError for anything
        else, such as ``0x61``."""
        if self.ended or self._tokens[self.at].token_type is not TokenType.STRING:
            raise self.unreadable("a string")
        quote, inside = self._quoted()
        if self._author is Author.SHOW_CREATE and may_be_two(inside):
            raise AmbiguousError(*_HOW_TO_WRITE, self._tokens[self.at].line)
        self.at += 1
        escapes = self._author is Author.PERSON
        value = _ESCAPED[quote].sub(_unescaped, inside) if escapes else inside.replace(quote * 2, quote)
        return value.rstrip(" ")

    def number(self, kind: TokenType) -> str | None:
        """Passes a literal of a kind (NUMBER, HEX_STRING, BIT_STRING) and returns its digits; None if none comes
        next."""
        if self.ended or self._tokens[self.at].token_type is not kind:
            return None
        self.at += 1
        return self._tokens[self.at - 1].text

    def skip_introducer(self) -> None:
        """Passes the character set before a string: TiCDC writes ``_UTF8MB4'…'`` (wire.md 8.9)."""
        if not self.ended and self._tokens[self.at].token_type is TokenType.INTRODUCER:
            self.at += 1

    def unreadable(self, wanted: str, words: int = 1) -> UnreadableError:
        """Returns the error that says what was expected at this place, and the ``words`` words that stand there."""
        at = min(self.at, len(self._tokens) - 1)
        if at < 0:
            return UnreadableError(wanted, "nothing", 1)
        found = " ".join(token.text for token in self._tokens[at : at + words])
        return UnreadableError(wanted, "the end" if self.ended else repr(found), self._tokens[at].line)

    def _part(self, start: int, end: int) -> Tokens:
        return Tokens(self._tokens[start:end], self._words[start:end], self._text, self._author)

    def _quoted(self) -> tuple[str, str]:
        """Returns the quote of the string that comes next, and what is written between it."""
        raw = self._raw(self._tokens[self.at])
        return raw[-1], raw[raw.index(raw[-1]) + 1 : -1]

    def _raw(self, token: Token) -> str:
        return self._text[token.start : token.end + 1]


def _unescaped(match: re.Match[str]) -> str:
    return match[0][0] if match[1] is None else _ESCAPES.get(match[1], match[1])
