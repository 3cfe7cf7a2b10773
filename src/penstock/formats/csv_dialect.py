"""How values of a CSV file are separated and quoted, by Spark's options, and the text as every CSV library reads it.

Spark's reader (univocity) and the libraries of Python agree on text of one form: values are separated by one character;
a quote begins a value and ends it, and what stands twice inside of it stands for one. `plain` brings text to it:

| text, with Spark's defaults | Spark | here |
|---|---|---|
| `"a\\"b",c` | `a"b`, `c` | `"a""b",c` |
| `#x` with `comment="#"`, a line of blanks | no row | left out |
| `a"b,c`, `"a" b` | | as it stands, if a quote does not begin the value |
| `"a""b"`, `"a"b`, a quote that is not closed | whatever follows from the character | an error that names the line |

The last row is the reason for `record`: text is read only where it is certain that there is one way to read it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

from penstock.formats.file_format import Reading, UnreadableError
from penstock.formats.text_file import is_set

_STAND_INS = tuple(bytes([code]) for code in range(0x1F, 0x0D, -1))  # for what a library takes no more than one byte of
_BLANK_LINE = re.compile(rb"(?:\A|(?<=[\r\n]))[\x00-\x09\x0b\x0c\x0e-\x20]+(?=[\r\n]|\Z)")
_BLANKS = rb"[ \t]*+"
_LINE_BREAK = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True)
class Dialect:
    """The options of a table that say how values are separated."""

    separator: bytes
    quote: bytes  # empty: there are none
    escape: bytes  # empty: there is none
    comment: bytes
    multi_line: bool
    trims: tuple[bool, bool]  # whether blanks before and after a value without quotes are dropped

    @property
    def doubles(self) -> bool:
        """Whether a quote inside of a value stands twice."""
        return self.escape == self.quote

    @cached_property
    def record(self) -> bytes:
        """The pattern of a record that can be read in one way only."""
        separator, ends = re.escape(self.separator), rb"(?=%s|[\r\n]|\Z)" % re.escape(self.separator)
        before, after = (_BLANKS if trim else b"" for trim in self.trims)
        if len(self.separator) > 1:
            unquoted = rb"(?:(?!%s)[^\r\n%s])++" % (separator, re.escape(self.quote))
        elif any(self.trims):
            unquoted = rb"[^%s\r\n%s]++" % (separator, re.escape(self.quote))
        else:
            unquoted = rb"[^%s\r\n%s][^%s\r\n]*+" % (separator, re.escape(self.quote), separator)
        value = (
            b"(?:%s%s%s%s|%s|)" % (before, self.quoted, after, ends, unquoted) if self.quote else b"(?:%s|)" % unquoted
        )
        return b"%s(?:%s%s)*+" % (value, separator, value)

    @cached_property
    def quoted(self) -> bytes:
        """The pattern of a value in quotes."""
        own = re.escape(self.quote)
        inside = own if self.multi_line else own + b"\r\n"
        if not self.escape:
            return b"%s[^%s]*+%s" % (own, inside, own)
        if self.doubles:
            return b"%s(?:[^%s]|%s%s)*+%s" % (own, inside, own, own, own)
        escape = re.escape(self.escape)
        after = rb"[\s\S]" if self.multi_line else rb"[^\r\n]"
        return b"%s(?:[^%s%s]|%s%s)*+%s" % (own, inside, escape, escape, after, own)

    def _none_of(self, more: bytes) -> bytes:
        return re.escape(self.separator[:1]) + b"\r\n" + re.escape(more)

    @property
    def of_plain_text(self) -> Dialect:
        """How text is read that all libraries read alike."""
        return replace(self, escape=self.quote, comment=b"", trims=(False, False))

    def plain(self, data: bytes) -> bytes:
        """Text that all libraries read alike."""
        data = self._with_one_line_end(data)
        if self.comment and self.comment in data:
            if self.multi_line and self.quote and self.quote in data:
                hint = "leave one of them out, or read the files by dataframe(spark)"
                raise UnreadableError("comments among values of several lines are not read", hint=hint)
            comment = rb"(?:\A|(?<=[\r\n]))%s[^\r\n]*+" % re.escape(self.comment)
            data = re.sub(comment, b"", data)
        if not self.multi_line:
            data = _BLANK_LINE.sub(b"", data)
        if self.quote and self.quote in data:
            self._check(data)
        if any(self.trims):
            data = self._trimmed(data)
        if self.quote and self.escape and not self.doubles and self.escape in data and self.quote in data:
            data = self._doubled(data)
        return data

    def _with_one_line_end(self, data: bytes) -> bytes:
        """Where values may have several lines, Spark takes the first line end of a file for that of all."""
        if not self.multi_line:
            return data
        if b"\x00" in data:
            raise UnreadableError("it has a NUL, which Spark takes for a comment", hint="remove it")
        if b"\r" not in data:
            return data
        if data.count(b"\r\n") == data.count(b"\r") == data.count(b"\n"):
            return data.replace(b"\r\n", b"\n")
        raise UnreadableError("its lines end in different ways", hint="write them all with the same line end")

    def _check(self, data: bytes) -> None:
        """Refuse text whose quotes can be read in several ways."""
        match = re.match(rb"(?:%s(?:\r\n|\r|\n|\Z))*+" % self.record, data)
        assert match is not None  # it matches nothing at all, too
        if match.end() == len(data):
            return
        line = data[: match.end()].count(b"\n") + 1
        text = _LINE_BREAK.split(data[match.end() :], maxsplit=1)[0].decode(errors="replace")[:40]
        ways = (
            [] if self.doubles else [f"set escape={self.quote.decode()!r} where quotes inside of a value stand twice"]
        )
        ways += [] if self.multi_line else ["set multiLine=True where values have several lines"]
        way = ", ".join([*ways, "or read it by dataframe(spark)"])
        raise UnreadableError(f"the quotes of {text!r} in line {line:,} can be read in several ways", hint=way)

    def _trimmed(self, data: bytes) -> bytes:
        """Without the blanks around values; a value in quotes keeps its own."""
        before, after = self.trims
        separator = re.escape(self.separator)
        blank = rb"[\x00-\x08\x0b\x0c\x0e-\x20]" if self.separator == b"\t" else rb"[\x00-\x09\x0b\x0c\x0e-\x20]"
        patterns = [b"(%s)" % self.quoted] if self.quote else [b"(\r\n)"]
        if before:
            patterns.append(rb"(?:\A|(?<=[\r\n])|(?<=%s))%s++" % (separator, blank))
        if after:
            patterns.append(rb"%s++(?=%s|[\r\n]|\Z)" % (blank, separator))
        return re.sub(b"|".join(patterns), lambda match: match[1] or b"", data)

    def _doubled(self, data: bytes) -> bytes:
        """Quotes inside of values twice instead of escaped."""
        begin = rb"(?:\A|(?<=[\r\n])|(?<=%s))" % re.escape(self.separator)
        escaped = re.compile(re.escape(self.escape) + b"([%s])" % re.escape(self.quote + self.escape))
        twice = {self.quote: self.quote * 2, self.escape: self.escape}

        def change(match: re.Match[bytes]) -> bytes:
            value = match[0][len(self.quote) : -len(self.quote)]
            return self.quote + escaped.sub(lambda each: twice[each[1]], value) + self.quote

        return re.sub(begin + self.quoted, change, data)


def dialect_of(reading: Reading) -> Dialect:
    """The dialect that options tell."""
    separator = _separator(reading.option("sep", reading.option("delimiter", ",")))
    quote, escape = (_character(reading, "quote", '"'), _character(reading, "escape", "\\"))
    trims = (is_set(reading, "ignoreLeadingWhiteSpace"), is_set(reading, "ignoreTrailingWhiteSpace"))
    comment = _character(reading, "comment", "")
    dialect = Dialect(separator, quote, escape if quote else b"", comment, is_set(reading, "multiLine"), trims)
    if len(separator) > 1 and any(trims):
        hint = "read the files by dataframe(spark)"
        raise UnreadableError("blanks around values are kept where a separator has several characters", hint=hint)
    return dialect


def _separator(text: str) -> bytes:
    if text == "\\t":
        return b"\t"
    if not text or "\\" in text or "\n" in text or "\r" in text or "\0" in text:
        raise UnreadableError(f"the separator {text!r} is not read", hint="give a character, such as ';' or a tab")
    return text.encode()


def _character(reading: Reading, name: str, default: str) -> bytes:
    text = reading.option(name, default)
    if len(text) > 1 or not text.isascii() or text in ("\r", "\n", "\0"):
        raise UnreadableError(f"the option {name} is {text!r}", hint="give one ASCII character, or nothing")
    return text.encode()


def stand_in(data: bytes) -> bytes:
    """A byte that does not occur in a text."""
    for each in _STAND_INS:
        if each not in data:
            return each
    raise UnreadableError("it has all control characters", hint="read it by dataframe(spark)")
