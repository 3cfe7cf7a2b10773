"""What `advise()` found: numbers for machines, and a table in plain text for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.deprecation import deprecated
from penstock.lake.advise.map_advice import MapAdvice
from penstock.lake.layout.coalesce import Coalesce
from penstock.prune.notebook import facts, grid
from penstock.prune.plan_report import human_bytes

BANDS = (64 << 10, 1 << 20, 8 << 20, 32 << 20, 128 << 20)
_SHARES = {0: "least", 0.1: "10 %", 0.5: "half", 0.9: "90 %", 0.99: "99 %", 1: "most"}  # those that are shown


@dataclass(frozen=True)
class Band:
    """Logical partitions below a size and not below the size before; without one, all that are larger."""

    below: int | None
    partitions: int
    bytes: int


@dataclass(frozen=True)
class Opens:
    """The files that queries open: of one logical partition, on average and at most, and of all."""

    mean: float
    most: int
    scan: int


@dataclass(frozen=True)
class Option:
    """What there would be under a rule; `ratio` is how many files there are now for each of those."""

    rule: Coalesce | None
    files: int
    mean_bytes: int
    opens: Opens
    ratio: float

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the rule."""
        return () if self.rule is None else self.rule.columns

    def to_dict(self) -> dict[str, Any]:
        """Plain values for machines."""
        return {**asdict(self), "rule": _rule(self.rule)}


@dataclass(frozen=True)
class Advice:
    """The partitions of a table, what coalescing would change, and what to do."""

    table: str
    rule: Coalesce | None = None  # the present one
    files: int = 0
    bytes: int = 0
    partitions: int = 0
    unknown_files: int = 0  # those that do not say which logical partitions they hold
    quantiles: Mapping[float, int] = field(default_factory=dict)  # of the bytes of logical partitions
    bands: tuple[Band, ...] = ()
    opens: Opens | None = None
    compacted: Option | None = None  # under the present rule, after compact()
    options: tuple[Option, ...] = ()
    suggested: Coalesce | None = None
    advice: str = ""
    maps: tuple[MapAdvice, ...] = ()

    @property
    def mean_bytes(self) -> int:
        """The mean size of a file."""
        return self.bytes // max(1, self.files)

    @property
    def said(self) -> str:
        """The former name of `advice`."""
        deprecated("Advice.said", since="0.2", removed_in="0.4", instead="advice")
        return self.advice

    def to_dict(self) -> dict[str, Any]:
        """Plain values for machines."""
        rules = {"rule": _rule(self.rule), "suggested": _rule(self.suggested)}
        quantiles = {str(share): size for share, size in self.quantiles.items()}
        compacted = None if self.compacted is None else self.compacted.to_dict()
        options = [option.to_dict() for option in self.options]
        known = {**asdict(self), **rules, "quantiles": quantiles, "compacted": compacted, "options": options}
        return {**known, "mean_bytes": self.mean_bytes}

    def explain(self) -> str:
        """The same for people."""
        lines = [*map(_line, self._facts()), *self._changes(), *map(_line, self._to_do())]
        return "\n".join(line.rstrip() for line in lines)

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        head, *options = self._options() or [()]
        return facts(self._facts()) + grid(head, options) + facts(self._to_do())

    def _facts(self) -> Iterator[tuple[str, str]]:
        """What there is, in lines with a head each."""
        yield "table", self.table
        size = f", {human_bytes(self.mean_bytes)} on average" if self.files else ""
        yield "files", f"{self.files:,} with {human_bytes(self.bytes)}{size}"
        if self.unknown_files:
            yield "", f"{self.unknown_files:,} of them do not say which logical partitions they hold"
        yield "rule", describe(self.rule)
        if self.opens is not None and self.compacted is not None:
            yield from self._partitions(self.opens)

    def _to_do(self) -> Iterator[tuple[str, str]]:
        yield "advice", self.advice
        for each in self.maps:
            for i, line in enumerate(each.lines()):
                yield "" if i else "map", line

    def _partitions(self, opens: Opens) -> Iterator[tuple[str, str]]:
        yield "partitions", f"{self.partitions:,} logical ones"
        shown = [(_SHARES[share], size) for share, size in self.quantiles.items() if share in _SHARES]
        sizes = " · ".join(f"{share} {human_bytes(size)}" for share, size in shown)
        yield "sizes", f"of a partition: {sizes}"
        head, width = "skew", max(len(f"{band.partitions:,}") for band in self.bands)
        for band in self.bands:
            name = "more" if band.below is None else f"below {human_bytes(band.below)}"
            share = 100 * band.partitions / max(1, self.partitions)
            yield head, f"{name:<16} {band.partitions:>{width},}  {share:3.0f} %  {human_bytes(band.bytes)}"
            head = ""
        one = f"one logical partition: {opens.mean:.1f} files on average, at most {opens.most:,}"
        yield "queries", f"{one}; all of the table: {opens.scan:,}"

    def _options(self) -> list[tuple[str, ...]]:
        """What would be, as rows under a head. Nothing where there are no partitions."""
        if self.opens is None or self.compacted is None:
            return []
        rows: list[tuple[str, ...]] = [
            ("what would be", "files", "mean size", "one partition", "at most", "against now")
        ]
        named = [("compact() as it is", self.compacted), *((describe(option.rule), option) for option in self.options)]
        for name, o in named:
            figures = (f"{o.files:,}", human_bytes(o.mean_bytes), f"{o.opens.mean:.1f}", f"{o.opens.most:,}")
            rows.append((name, *figures, _against_now(o.ratio)))
        return rows

    def _changes(self) -> Iterator[str]:
        """The options as plain text, between empty lines."""
        rows = self._options()
        if not rows:
            return
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        yield ""
        for name, *numbers in rows:
            cells = (f"{cell:>{width}}" for cell, width in zip(numbers, widths[1:], strict=True))
            yield "  ".join([f"{name:<{widths[0]}}", *cells])
        yield ""


def _against_now(ratio: float) -> str:
    if ratio == 1:
        return "as many"
    return f"{ratio:.1f}× fewer" if ratio > 1 else f"{1 / ratio:.1f}× more"


def describe(rule: Coalesce | None) -> str:
    """A rule in words."""
    if rule is None:
        return "none"
    listed = f"{len(rule.values):,} listed" if rule.values else ""
    below = "" if rule.below is None else f"below {human_bytes(rule.below)}"
    return f"{', '.join(rule.columns)}: {' or '.join(part for part in (below, listed) if part)}"


def _rule(rule: Coalesce | None) -> dict[str, Any] | None:
    if rule is None:
        return None
    values = [[repr(v) if isinstance(v, bytes) else v for v in value] for value in rule.values]
    return {"columns": list(rule.columns), "below": rule.below, "values": values}


def _line(pair: tuple[str, str]) -> str:
    head, text = pair
    return f"{head:<12}{text}"
