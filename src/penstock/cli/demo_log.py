"""The log of the demo: days × apps with Zipf's sizes, users in ranges, headers as a map, and rows that come late."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

DAYS, APPS, BATCHES = 10, 30, 3
FIRST = datetime(2026, 5, 14, tzinfo=UTC)
_DAY = 86_400_000_000
_COUNTRIES = ("DE", "FR", "US", "BR", "IN", "JP", "NG", "PL")
_LATE = 0.02


def make_batches(rows: int) -> list[Any]:
    """The log as it arrives: one batch for some days each, with a few rows of the days before."""
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(20260514)
    weights = 1 / np.arange(1, APPS + 1) ** 1.4
    app = random.choice(APPS, rows, p=weights / weights.sum())
    day = random.integers(0, DAYS, rows)
    micros = int(FIRST.timestamp()) * 1_000_000 + day * _DAY + random.integers(0, _DAY, rows)
    table = pa.table(
        {
            "ts": pa.array(micros, pa.int64()).view(pa.timestamp("us", "UTC")),
            "app": pa.array([f"app-{i:02d}" for i in range(APPS)]).take(pa.array(app)),
            "user_id": random.integers(0, 100_000, rows),
            "status": random.choice([200, 200, 200, 200, 304, 404, 500], rows).astype(np.int32),
            "duration_ms": random.gamma(2.0, 120.0, rows).round(3),
            "path": pa.array([f"/p/{i}" for i in range(500)]).take(pa.array(random.integers(0, 500, rows))),
            "headers": _headers(random, rows),
        }
    )
    arrives = day * BATCHES // DAYS
    late = (random.random(rows) < _LATE) & (arrives < BATCHES - 1)
    arrives = np.where(late, BATCHES - 1, arrives)
    return [table.filter(pa.array(arrives == number)) for number in range(BATCHES)]


def _headers(random: Any, rows: int) -> Any:
    """Two keys that most rows have and people ask for, and a tail of others."""
    import numpy as np
    import pyarrow as pa

    names = ["country", "agent", *(f"x-{i}" for i in range(6))]
    values = [
        np.array(_COUNTRIES)[random.integers(0, len(_COUNTRIES), rows)],
        np.array([f"agent/{i}" for i in range(40)])[random.integers(0, 40, rows)],
        *(np.array([f"trace-{k}-{i}" for i in range(997)])[random.integers(0, 997, rows)] for k in range(6)),
    ]
    has = np.stack([random.random(rows) < share for share in (0.98, 0.9, *(0.5,) * 6)], axis=1)
    keys = np.broadcast_to(np.array(names), has.shape)[has]
    offsets = np.concatenate([[0], np.cumsum(has.sum(axis=1))]).astype(np.int32)
    present = np.stack(values, axis=1)[has]
    return pa.MapArray.from_arrays(pa.array(offsets), pa.array(keys.tolist()), pa.array(present.tolist()))
