"""Queries over a table `t(id, g, headers)` whose map is shredded, each with what it has to read.

What is needed is written as letters: `S` values of hot keys, `C` whether a hot key is there, `R` values of cold keys,
`D` whether a cold key is there, `W` the whole map, `N` whether there is a map at all. No letter: nothing of the map.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

HOT = ("a", "b", "n", "", "x,y", "it's", "p.q", "größe")
COLD = ("c", "d.d", "w z")

# What each need reads, by state: `s` sidecars, `r` the residual.
READS = {
    "exact": {"S": "s", "C": "s", "R": "r", "D": "r", "W": "rs", "N": ""},
    "value": {"S": "s", "C": "rs", "R": "r", "D": "r", "W": "rs", "N": "r"},
    "maybe": {"S": "rs", "C": "rs", "R": "r", "D": "rs", "W": "rs", "N": "rs"},
    "mirror": {"S": "s", "C": "r", "R": "r", "D": "r", "W": "r", "N": "r"},
    "mirror_exact": {"S": "s", "C": "s", "R": "r", "D": "r", "W": "r", "N": ""},
}

QUERIES = [
    # projections
    ("S", "SELECT id, headers['a'] FROM t"),
    ("S", "SELECT id, headers['a'] x, headers['b'] y, headers['a'] z FROM t"),
    ("S", "SELECT id, headers.a FROM t"),
    ("S", "SELECT id, element_at(headers, 'a') FROM t"),
    ("S", "SELECT id, try_element_at(headers, 'b') FROM t"),
    (
        "S",
        "SELECT id, headers[''] e, headers['x,y'] k, headers['it\\'s'] q, headers['p.q'] d, headers['größe'] u FROM t",
    ),
    ("R", "SELECT id, headers['c'] FROM t"),
    ("R", "SELECT id, headers['d.d'], headers['nobody has it'], element_at(headers, 'w z') FROM t"),
    ("SR", "SELECT id, headers['a'], headers['c'] FROM t"),
    ("S", "SELECT id, headers[concat('a', '')] FROM t"),
    ("W", "SELECT id, headers[CASE WHEN g = 1 THEN 'a' ELSE 'c' END] FROM t"),
    ("W", "SELECT id, headers FROM t"),
    ("SW", "SELECT id, headers, headers['a'] FROM t"),
    ("C", "SELECT id, map_contains_key(headers, 'a') FROM t"),
    ("C", "SELECT id, map_contains_key(headers, 'n') x, array_contains(map_keys(headers), 'n') y FROM t"),
    ("D", "SELECT id, map_contains_key(headers, 'c') FROM t"),
    ("SC", "SELECT id, headers['n'], map_contains_key(headers, 'n') FROM t"),
    ("S", "SELECT id, upper(headers['a']) || coalesce(headers['b'], '-') FROM t"),
    ("S", "SELECT id, CASE WHEN headers['a'] = 'v1' THEN headers['b'] ELSE headers['n'] END FROM t"),
    ("S", "SELECT id, if(g = 1, headers, NULL)['a'] FROM t"),
    ("SR", "SELECT id, if(g = 1, headers['a'], headers['c']) FROM t"),
    ("N", "SELECT id, headers IS NULL, headers IS NOT NULL FROM t"),
    ("S", "SELECT id, named_struct('m', headers, 'i', id).m['a'] FROM t"),
    ("S", "SELECT s.i, s.m['a'], s.m['b'] FROM (SELECT named_struct('m', headers, 'i', id) s FROM t)"),
    # whole maps
    ("W", "SELECT id, size(headers), cardinality(headers) FROM t"),
    ("W", "SELECT id, sort_array(map_keys(headers)) FROM t"),
    ("W", "SELECT id, sort_array(map_values(headers)) FROM t"),
    ("W", "SELECT id, sort_array(transform(map_entries(headers), e -> e.key || '=' || coalesce(e.value, '?'))) FROM t"),
    ("W", "SELECT id, map_filter(headers, (k, v) -> k < 'c') FROM t"),
    ("W", "SELECT id, k, v FROM t LATERAL VIEW explode(headers) AS k, v"),
    ("W", "SELECT id, k, v FROM t LATERAL VIEW OUTER explode(headers) AS k, v WHERE g = 1"),
    ("W", "SELECT k, count(*), max(v) FROM (SELECT explode(headers) AS (k, v) FROM t) GROUP BY k"),
    ("W", "SELECT headers['a'], count(*) FROM t GROUP BY headers"),
    ("W", "SELECT sum(size(headers)) FROM t"),
    ("W", "SELECT x.id, size(y.headers) FROM t x LEFT JOIN t y ON x.id = y.id + 1"),
    ("W", "SELECT id, cardinality(lag(headers) OVER (ORDER BY id)) FROM t"),
    # filters
    ("S", "SELECT id FROM t WHERE headers['a'] = 'v1'"),
    ("S", "SELECT id, headers['a'] FROM t WHERE headers['a'] IN ('v1', 'v3')"),
    ("S", "SELECT id FROM t WHERE headers['a'] LIKE 'v%' AND headers['b'] LIKE '%2'"),
    ("S", "SELECT id FROM t WHERE headers['a'] > 'v1' AND headers['a'] <= 'v3'"),
    ("S", "SELECT id FROM t WHERE headers['a'] BETWEEN 'v0' AND 'v2' OR headers['b'] = 'v4'"),
    ("S", "SELECT id FROM t WHERE headers['a'] IS NULL"),
    ("S", "SELECT id FROM t WHERE headers['n'] IS NOT NULL"),
    ("S", "SELECT id FROM t WHERE headers['a'] <=> headers['b']"),
    ("S", "SELECT id FROM t WHERE NOT (headers['a'] = 'v1')"),
    ("S", "SELECT id FROM t WHERE headers[''] = 'v1' OR headers['größe'] = 'v2'"),
    ("R", "SELECT id FROM t WHERE headers['c'] = 'v1'"),
    ("SR", "SELECT id FROM t WHERE headers['a'] = 'v1' OR headers['c'] = 'v1'"),
    ("C", "SELECT id FROM t WHERE map_contains_key(headers, 'n')"),
    ("C", "SELECT id FROM t WHERE NOT map_contains_key(headers, 'n')"),
    ("N", "SELECT id FROM t WHERE headers IS NULL"),
    ("SW", "SELECT id, headers FROM t WHERE headers['a'] = 'v1'"),
    ("", "SELECT count(*) FROM t"),
    ("", "SELECT id, g FROM t WHERE g = 1"),
    ("W", "SELECT id FROM t WHERE size(headers) > 3"),
    # aggregates
    ("S", "SELECT headers['a'] k, count(*) FROM t GROUP BY headers['a']"),
    ("S", "SELECT headers['a'] k, max(headers['b']), count(headers['n']) FROM t GROUP BY 1 HAVING count(*) > 2"),
    ("S", "SELECT g, count(DISTINCT headers['a']) FROM t GROUP BY g"),
    ("S", "SELECT g, count(DISTINCT headers['a']), count(DISTINCT headers['b']) FROM t GROUP BY g"),
    ("S", "SELECT g, sort_array(collect_list(headers['a'])) FROM t GROUP BY g"),
    ("S", "SELECT g, max_by(headers, id)['a'], min_by(headers, id)['b'] FROM t GROUP BY g"),
    ("S", "SELECT g, m['a'] FROM (SELECT g, max_by(headers, id) m FROM t GROUP BY g)"),
    ("S", "SELECT g, max_by(headers, id) FILTER (WHERE id % 2 = 0)['a'] FROM t GROUP BY g"),
    ("S", "SELECT m['a'], m['b'] FROM (SELECT first(headers) m FROM (SELECT * FROM t ORDER BY id) WHERE id % 200 = 7)"),
    ("S", "SELECT m['a'] FROM (SELECT id, any_value(headers) m FROM t GROUP BY id)"),
    ("SC", "SELECT map_contains_key(m, 'n'), m['n'] FROM (SELECT id, last(headers) m FROM t GROUP BY id)"),
    ("S", "SELECT headers['a'] a, headers['b'] b, count(*) FROM t GROUP BY ROLLUP (headers['a'], headers['b'])"),
    ("S", "SELECT headers['a'] a, g, count(*) FROM t GROUP BY GROUPING SETS ((headers['a']), (g), ())"),
    ("S", "SELECT g, grouping(g), max(headers['a']) FROM t GROUP BY CUBE (g)"),
    ("S", "SELECT DISTINCT headers['a'], headers['b'] FROM t"),
    ("S", "SELECT * FROM (SELECT g, headers['a'] a, id FROM t) PIVOT (count(id) FOR a IN ('v1', 'v2'))"),
    ("S", "SELECT count_if(headers['a'] = 'v1'), sum(if(headers['b'] IS NULL, 1, 0)) FROM t"),
    ("S", "SELECT approx_count_distinct(headers['a']), bool_and(headers['b'] = 'v1') FROM t"),
    # order and limits
    ("S", "SELECT id, headers['a'] FROM t ORDER BY headers['a'], id LIMIT 7"),
    ("S", "SELECT id FROM t ORDER BY headers['b'] DESC NULLS LAST, id LIMIT 5 OFFSET 3"),
    ("S", "SELECT m['a'] FROM (SELECT id, headers m FROM t ORDER BY id LIMIT 10)"),
    ("S", "SELECT m['a'], m['b'] FROM (SELECT id, headers m FROM t DISTRIBUTE BY id SORT BY id)"),
    ("S", "SELECT m['a'] FROM (SELECT id, headers m FROM t ORDER BY id LIMIT 10 OFFSET 2) WHERE m['b'] = 'v2'"),
    ("S", "SELECT count(headers['a']) >= 0 FROM t TABLESAMPLE (50 PERCENT) REPEATABLE (7)"),
    ("S", "SELECT /*+ REPARTITION(2) */ id, headers['a'] FROM t"),
    # joins
    ("S", "SELECT x.id, y.id, x.headers['b'] FROM t x JOIN t y ON x.headers['a'] = y.headers['b'] AND x.id < y.id"),
    ("S", "SELECT x.id, y.headers['a'] FROM t x LEFT JOIN t y ON x.id = y.id + 1"),
    ("SC", "SELECT x.id, y.headers['n'], map_contains_key(y.headers, 'n') FROM t x LEFT JOIN t y ON x.id = y.id + 1"),
    ("S", "SELECT x.headers['a'], y.id FROM t x RIGHT JOIN t y ON x.id = y.id + 100"),
    ("S", "SELECT x.headers['a'], y.headers['b'] FROM t x FULL JOIN t y ON x.id = y.id + 50"),
    ("S", "SELECT x.id FROM t x LEFT JOIN t y ON x.id = y.id + 1 WHERE y.headers['a'] IS NULL"),
    ("S", "SELECT x.id, x.headers['a'] FROM t x LEFT SEMI JOIN t y ON x.headers['a'] = y.headers['b']"),
    ("S", "SELECT x.id, x.headers['b'] FROM t x LEFT ANTI JOIN t y ON x.headers['a'] = y.headers['n'] AND y.g = 1"),
    ("S", "SELECT x.headers['a'], y.headers['b'] FROM t x CROSS JOIN (SELECT * FROM t WHERE id % 67 = 5) y"),
    ("SR", "SELECT x.headers['a'], y.headers['c'] FROM t x JOIN t y ON x.id = y.id"),
    ("SW", "SELECT x.headers, y.headers['a'] FROM t x JOIN t y ON x.id = y.id WHERE y.headers['b'] = 'v1'"),
    ("S", "SELECT id, headers['a'], v FROM t JOIN VALUES ('v1', 10), ('v2', 20) AS d(k, v) ON headers['a'] = k"),
    (
        "S",
        "SELECT e FROM t x JOIN t y ON x.id = y.id LATERAL VIEW explode(array(x.headers['a'], y.headers['b'])) AS e",
    ),
    ("S", "SELECT id, e, headers['a'] FROM t LATERAL VIEW explode(split(headers['b'], 'v')) AS e"),
    ("S", "SELECT id, l.z FROM t, LATERAL (SELECT headers['a'] || 'z' AS z) l"),
    # windows
    ("S", "SELECT id, row_number() OVER (PARTITION BY headers['a'] ORDER BY headers['b'], id) FROM t"),
    ("S", "SELECT id, lag(headers['a']) OVER (ORDER BY id) FROM t"),
    ("S", "SELECT id, lag(headers) OVER (ORDER BY id)['a'], lead(headers, 2) OVER (ORDER BY id)['b'] FROM t"),
    ("S", "SELECT id, first_value(headers) OVER (PARTITION BY g ORDER BY id)['a'] FROM t"),
    ("S", "SELECT id, nth_value(headers, 2) OVER (PARTITION BY g ORDER BY id)['a'] FROM t"),
    ("SC", "SELECT id, map_contains_key(lag(headers) OVER (ORDER BY id), 'n'), headers['a'] FROM t"),
    (
        "S",
        "SELECT id, m['a'] FROM (SELECT id, headers m, rank() OVER (PARTITION BY g ORDER BY id) r FROM t) WHERE r <= 3",
    ),
    ("W", "SELECT id, last_value(headers) IGNORE NULLS OVER (PARTITION BY g ORDER BY id)['a'] FROM t"),
    # subqueries
    ("S", "WITH c AS (SELECT id, headers h FROM t) SELECT x.h['a'], y.h['b'] FROM c x JOIN c y ON x.id = y.id"),
    ("S", "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.headers['b'] = t.headers['a'] AND u.g = 1)"),
    (
        "S",
        "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE u.headers['n'] = t.headers['a'] AND u.id > t.id)",
    ),
    ("S", "SELECT id FROM t WHERE headers['a'] IN (SELECT headers['b'] FROM t WHERE g = 2)"),
    ("S", "SELECT id FROM t WHERE headers['a'] NOT IN (SELECT headers['b'] FROM t WHERE headers['b'] IS NOT NULL)"),
    ("S", "SELECT id FROM t WHERE id IN (SELECT u.id FROM t u WHERE u.headers['a'] = t.headers['b'])"),
    ("S", "SELECT id FROM t WHERE headers['a'] = (SELECT max(headers['a']) FROM t)"),
    (
        "S",
        "SELECT id FROM t WHERE headers['b'] = (SELECT max(u.headers['b']) FROM t u WHERE u.id <= t.id AND u.g = t.g)",
    ),
    ("S", "SELECT id, (SELECT count(*) FROM t u WHERE u.headers['a'] = t.headers['b']) FROM t WHERE g = 1"),
    (
        "S",
        "SELECT id, (SELECT max(u.id) FROM t u WHERE u.headers['a'] = t.headers['b']) FROM t WHERE headers['n'] > 'v'",
    ),
    ("S", "SELECT g, headers['a'] IN (SELECT headers['b'] FROM t WHERE g = 1) FROM t"),
    (
        "S",
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.id = t.id + 1 AND u.headers['a'] > t.headers['a'])",
    ),
    # sets
    ("S", "SELECT headers['a'] FROM t UNION SELECT headers['b'] FROM t"),
    ("S", "SELECT m['a'] FROM (SELECT headers m FROM t WHERE g = 1 UNION ALL SELECT headers FROM t WHERE g = 2)"),
    ("S", "SELECT m['a'] FROM (SELECT headers m FROM t UNION ALL SELECT map('a', 'other')) WHERE m['a'] LIKE '%o%'"),
    ("S", "SELECT headers['a'] FROM t INTERSECT SELECT headers['b'] FROM t"),
    ("S", "SELECT headers['a'] FROM t EXCEPT SELECT headers['b'] FROM t WHERE g = 1"),
    ("S", "SELECT headers['a'] FROM t EXCEPT ALL SELECT headers['b'] FROM t WHERE g = 1"),
    ("SC", "SELECT m['a'], map_contains_key(m, 'n') FROM (SELECT headers m FROM t UNION ALL SELECT headers FROM t)"),
    # functions of Python
    ("S", "SELECT id, shout(headers['a']) FROM t WHERE shout(headers['b']) = 'V1'"),
]


def plain(value: Any) -> Any:
    """A value that compares; the entries of a map in one order."""
    if isinstance(value, dict):
        return tuple(sorted((key, repr(inner)) for key, inner in value.items()))
    return tuple(map(plain, value)) if isinstance(value, list | tuple) else value


def rows_of(frame: DataFrame) -> list[str]:
    """The rows of an answer, whatever their order."""
    return sorted(repr(plain(row)) for row in frame.collect())
