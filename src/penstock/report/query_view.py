"""How a query sees every file of a table: the verdict and the reason of each, and of each piece of a shared file.

| kind of piece | |
|---|---|
| `skip` | the file is not read |
| `keep` | the file is read, and its rows are checked |
| `whole` | the file is read, and every row of it matches |
| `along` | no row of this partition matches, but its file is read for another one |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.sql_text import summarize
from penstock.expr.tree import TRUE
from penstock.prune.judge import Judgement
from penstock.prune.plan import Plan
from penstock.prune.verdict import Verdict
from penstock.tables.description import Description, Numbers, Pieces, joined

KINDS = ("skip", "keep", "whole", "along")
SKIP, KEEP, WHOLE, ALONG = range(4)
_LONGEST = 400


class Texts(dict[str, int]):
    """The numbers of texts, in their order; one that is new gets the next number."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]


@dataclass(frozen=True)
class Seen:
    """Verdicts and reasons of all files, and the kinds of all pieces, as columns."""

    plan: Plan
    verdicts: Numbers
    looked: npt.NDArray[np.bool_]  # whether the plan got as far as the file
    reasons: Texts
    codes: Numbers  # of the reasons
    kinds: Numbers
    _places: Numbers
    _starts: Numbers

    def residual(self, file: int) -> str | None:
        """What is left to check on a kept file's rows, for people; None when nothing is."""
        if self.verdicts[file] == SKIP:
            return None
        residual = self._judgement(file)[0].residual(self._judgement(file)[1])
        return None if residual == TRUE else summarize(residual, _LONGEST)

    def deletes(self, file: int) -> int:
        """How many delete files take rows away from a file that is read."""
        if self.verdicts[file] == SKIP:
            return 0
        judgement, place = self._judgement(file)
        return len(judgement.containers.deletes.get(place, ()))

    def _judgement(self, file: int) -> tuple[Judgement, int]:
        place = int(self._places[file])
        batch = int(np.searchsorted(self._starts, place, side="right")) - 1
        return self.plan.judgements[batch], place - int(self._starts[batch])


def see(plan: Plan, table: Description, pieces: Pieces) -> Seen:
    """Take the plan's word for what it looked at, and judge the rest to say why it was left out."""
    judged = table.judge(plan.pruner, pieces)
    reasons = Texts()
    verdicts, codes = _columns(judged, reasons)
    codes[verdicts != Verdict.SKIP] = reasons[f"its {table.level} was skipped"]
    names = [j.containers.names for j in plan.judgements if j.containers.names is not None]
    positions = pc.index_in(pieces.names, value_set=pa.concat_arrays(names) if names else pa.array([], pa.string()))
    looked = positions.is_valid().to_numpy(zero_copy_only=False)
    places = positions.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    planned = _columns(plan.judgements, reasons)
    verdicts = np.zeros(len(looked), np.int64)
    verdicts[looked] = planned[0][places[looked]]
    codes[looked] = planned[1][places[looked]]
    kinds = verdicts[pieces.of_file]
    kinds[(kinds != SKIP) & ~table.matching_pieces(judged, pieces)] = ALONG
    starts = np.cumsum([0, *(j.containers.count for j in plan.judgements)])
    return Seen(plan, verdicts, looked, reasons, codes, kinds, places, starts)


def _columns(judgements: Sequence[Judgement], reasons: Texts) -> tuple[Numbers, Numbers]:
    """Verdicts, and reasons by their numbers."""
    verdicts, codes = [], []
    for judgement in judgements:
        numbers = np.array([reasons[str(reason)] for reason in judgement.reasons], np.int64)
        verdicts.append(judgement.verdicts.astype(np.int64))
        codes.append(numbers[judgement.codes])
    return joined(verdicts), joined(codes)
