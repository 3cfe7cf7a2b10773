-- group: create
CREATE TABLE t (id bigint NOT NULL COMMENT 'unique', data string) USING iceberg;
DESCRIBE t;
-> id | bigint | unique
-> data | string | NULL
SELECT * FROM t;
SELECT count(*), max(id) FROM t;
-> 0 | NULL
CREATE TABLE t (id bigint) USING iceberg;
-> error
CREATE TABLE IF NOT EXISTS t (other int) USING iceberg;
DESCRIBE t;
-> id | bigint | unique
-> data | string | NULL
CREATE TABLE without_using (id int, at timestamp_ntz);
DESCRIBE without_using;
-> id | int | NULL
-> at | timestamp_ntz | NULL
CREATE TABLE corpus.create.full_name (id int) USING iceberg COMMENT 'a table' TBLPROPERTIES ('owner-team' = 'web');
SHOW TBLPROPERTIES corpus.create.full_name ('owner-team');
-> owner-team | web
CREATE TABLE by_identity (id bigint, app string, d date) USING iceberg PARTITIONED BY (app, d);
DESCRIBE by_identity;
-> id | bigint | NULL
-> app | string | NULL
-> d | date | NULL
-> # Partition Information |  |
-> # col_name | data_type | comment
-> app | string | NULL
-> d | date | NULL
CREATE TABLE by_transforms (id bigint, s string, ts timestamp, h timestamp, d date) USING iceberg PARTITIONED BY (bucket(16, id), truncate(4, s), days(ts), hours(h), months(d));
DESCRIBE by_transforms;
-> id | bigint | NULL
-> s | string | NULL
-> ts | timestamp | NULL
-> h | timestamp | NULL
-> d | date | NULL
-> |  |
-> # Partitioning |  |
-> Part 0 | bucket(16, id) |
-> Part 1 | truncate(4, s) |
-> Part 2 | days(ts) |
-> Part 3 | hours(h) |
-> Part 4 | months(d) |
CREATE TABLE by_year (ts timestamp) USING iceberg PARTITIONED BY (years(ts));
DESCRIBE by_year;
-> ts | timestamp | NULL
-> |  |
-> # Partitioning |  |
-> Part 0 | years(ts) |
CREATE TABLE hive_style (id bigint) USING iceberg PARTITIONED BY (app string);
DESCRIBE hive_style;
-> id | bigint | NULL
-> app | string | NULL
-> # Partition Information |  |
-> # col_name | data_type | comment
-> app | string | NULL
CREATE TABLE nested (id int, s struct<a: int COMMENT 'inner', b: struct<c: string>>, l array<int>, m map<string, double>) USING iceberg;
DESCRIBE nested;
-> id | int | NULL
-> s | struct<a:int,b:struct<c:string>> | NULL
-> l | array<int> | NULL
-> m | map<string,double> | NULL
CREATE TABLE of_nested (id int, s struct<app: string>) USING iceberg PARTITIONED BY (s.app);
DESCRIBE of_nested;
-> id | int | NULL
-> s | struct<app:string> | NULL
-> # Partition Information |  |
-> # col_name | data_type | comment
-> s.app | string | NULL
CREATE TABLE bad_column (id int) USING iceberg PARTITIONED BY (nope);
-> error
CREATE TABLE bad_transform (id int) USING iceberg PARTITIONED BY (days(id));
-> error
CREATE TABLE unknown_transform (id int) USING iceberg PARTITIONED BY (reversed(id));
-> error
CREATE TABLE bad_type (id interval year) USING iceberg;
-> error
CREATE TABLE twice (id int, ID int) USING iceberg;
-> error
CREATE TABLE by_twice (id int) USING iceberg PARTITIONED BY (id, id);
-> error
CREATE TABLE no_width (id int) USING iceberg PARTITIONED BY (bucket(0, id));
-> error
SHOW TABLES;
-> create | by_identity | false
-> create | by_transforms | false
-> create | by_year | false
-> create | full_name | false
-> create | hive_style | false
-> create | nested | false
-> create | of_nested | false
-> create | t | false
-> create | without_using | false
SHOW TABLES LIKE 'by*';
-> create | by_identity | false
-> create | by_transforms | false
-> create | by_year | false
SHOW COLUMNS IN by_identity;
-> app
-> d
-> id

-- group: insert
CREATE TABLE t (id bigint, name string, n int) USING iceberg;
INSERT INTO t VALUES (1, 'a', 10), (2, 'b', NULL);
SELECT * FROM t ORDER BY id;
-> 1 | a | 10
-> 2 | b | NULL
INSERT INTO t (name, id) VALUES ('c', 3);
INSERT INTO t BY NAME SELECT 40 AS n, 4 AS id;
INSERT INTO t TABLE t;
SELECT id, name, n, count(*) FROM t GROUP BY ALL ORDER BY id;
-> 1 | a | 10 | 2
-> 2 | b | NULL | 2
-> 3 | c | NULL | 2
-> 4 | NULL | 40 | 2
INSERT INTO t SELECT id + 100, upper(name), n FROM t WHERE id < 3;
SELECT id, name, count(*) FROM t WHERE id > 100 GROUP BY ALL ORDER BY id;
-> 101 | A | 2
-> 102 | B | 2
INSERT INTO t VALUES (1, 'a');
-> error
INSERT INTO t VALUES (1, 'a', 2, 3);
-> error
INSERT INTO t VALUES (1, 'a', 'ten');
-> error
INSERT INTO t BY NAME SELECT 1 AS id, 2 AS nope;
-> error
INSERT INTO t (id, id) VALUES (1, 2);
-> error
INSERT INTO t (id, nope) VALUES (1, 2);
-> error
INSERT INTO t SELECT 9223372036854775807L, 'overflow', 2147483648L;
-> error
INSERT INTO nope VALUES (1);
-> error
SELECT count(*) FROM t;
-> 12
INSERT INTO t SELECT * FROM t WHERE false;
SELECT count(*) FROM t;
-> 12
CREATE TABLE required (id bigint NOT NULL, s struct<a: int NOT NULL, b: int>) USING iceberg;
INSERT INTO required VALUES (1, named_struct('a', 1, 'b', NULL)), (2, NULL);
INSERT INTO required VALUES (NULL, NULL);
-> error
INSERT INTO required SELECT if(id = 7, NULL, id), NULL FROM range(10);
-> error
INSERT INTO required (s) VALUES (NULL);
-> error
INSERT INTO required VALUES (3, named_struct('a', CAST(NULL AS int), 'b', 1));
-> error
SELECT * FROM required ORDER BY id;
-> 1 | (a=1, b=NULL)
-> 2 | NULL
CREATE TABLE parted (id bigint, app string, d date) USING iceberg PARTITIONED BY (app, d);
INSERT INTO parted VALUES (1, 'a', DATE'2026-01-01'), (2, 'b', DATE'2026-01-01'), (3, 'a', DATE'2026-01-02');
INSERT INTO parted PARTITION (app = 'c') VALUES (4, DATE'2026-01-03');
INSERT INTO parted PARTITION (app = 'c', d = '2026-01-04') SELECT 5;
INSERT INTO parted PARTITION (d) SELECT 6, 'd', DATE'2026-01-04';
INSERT INTO parted PARTITION (id = 7) SELECT 'd', DATE'2026-01-04';
-> error
SELECT * FROM parted ORDER BY id;
-> 1 | a | 2026-01-01
-> 2 | b | 2026-01-01
-> 3 | a | 2026-01-02
-> 4 | c | 2026-01-03
-> 5 | c | 2026-01-04
-> 6 | d | 2026-01-04
SELECT app, count(*) FROM parted WHERE d >= DATE'2026-01-02' GROUP BY app ORDER BY app;
-> a | 1
-> c | 2
-> d | 1
WITH new AS (SELECT 10 AS id, 'cte' AS app, DATE'2026-02-01' AS d) INSERT INTO parted SELECT * FROM new;
SELECT * FROM parted WHERE app = 'cte';
-> 10 | cte | 2026-02-01
FROM (SELECT 11 AS id) x INSERT INTO parted SELECT id, 'from', DATE'2026-02-02';
SELECT * FROM parted WHERE id >= 10 ORDER BY id;
-> 10 | cte | 2026-02-01
-> 11 | from | 2026-02-02

-- group: overwrite
CREATE TABLE t (id bigint, app string, d date) USING iceberg PARTITIONED BY (app, d);
INSERT INTO t SELECT id, concat('app', id % 3), DATE'2026-01-01' + CAST(id % 2 AS int) FROM range(12);
INSERT OVERWRITE t PARTITION (app = 'app0') SELECT 100, DATE'2026-03-01';
SELECT app, d, count(*), min(id) FROM t GROUP BY ALL ORDER BY app, d;
-> app0 | 2026-03-01 | 1 | 100
-> app1 | 2026-01-01 | 2 | 4
-> app1 | 2026-01-02 | 2 | 1
-> app2 | 2026-01-01 | 2 | 2
-> app2 | 2026-01-02 | 2 | 5
INSERT OVERWRITE t PARTITION (app = 'app1', d = '2026-01-01') SELECT 101;
SELECT app, d, count(*), min(id) FROM t GROUP BY ALL ORDER BY app, d;
-> app0 | 2026-03-01 | 1 | 100
-> app1 | 2026-01-01 | 1 | 101
-> app1 | 2026-01-02 | 2 | 1
-> app2 | 2026-01-01 | 2 | 2
-> app2 | 2026-01-02 | 2 | 5
INSERT OVERWRITE t PARTITION (app = 'gone') SELECT id, d FROM t WHERE false;
SELECT count(*) FROM t;
-> 8
SET spark.sql.sources.partitionOverwriteMode = dynamic;
INSERT OVERWRITE t SELECT 200, 'app1', DATE'2026-01-02';
SELECT app, d, count(*), min(id) FROM t GROUP BY ALL ORDER BY app, d;
-> app0 | 2026-03-01 | 1 | 100
-> app1 | 2026-01-01 | 1 | 101
-> app1 | 2026-01-02 | 1 | 200
-> app2 | 2026-01-01 | 2 | 2
-> app2 | 2026-01-02 | 2 | 5
INSERT OVERWRITE t SELECT * FROM t WHERE false;
SELECT count(*) FROM t;
-> 7
INSERT OVERWRITE t PARTITION (app = 'app2', d) SELECT 300, DATE'2026-01-01';
SELECT app, d, count(*), min(id) FROM t GROUP BY ALL ORDER BY app, d;
-> app0 | 2026-03-01 | 1 | 100
-> app1 | 2026-01-01 | 1 | 101
-> app1 | 2026-01-02 | 1 | 200
-> app2 | 2026-01-01 | 1 | 300
-> app2 | 2026-01-02 | 2 | 5
INSERT OVERWRITE t VALUES (400, NULL, NULL), (401, 'app2', NULL);
SELECT app, d, count(*), min(id) FROM t GROUP BY ALL ORDER BY app, d;
-> NULL | NULL | 1 | 400
-> app0 | 2026-03-01 | 1 | 100
-> app1 | 2026-01-01 | 1 | 101
-> app1 | 2026-01-02 | 1 | 200
-> app2 | NULL | 1 | 401
-> app2 | 2026-01-01 | 1 | 300
-> app2 | 2026-01-02 | 2 | 5
INSERT OVERWRITE t VALUES (500, NULL, NULL);
SELECT id FROM t WHERE app IS NULL;
-> 500
SET spark.sql.sources.partitionOverwriteMode = static;
INSERT INTO t REPLACE WHERE app = 'app2' SELECT 600, 'app2', DATE'2026-06-01';
SELECT id, app FROM t ORDER BY id, app;
-> 100 | app0
-> 101 | app1
-> 200 | app1
-> 500 | NULL
-> 600 | app2
INSERT INTO t REPLACE WHERE app IS NULL AND d IS NULL SELECT 601, NULL, NULL;
SELECT id, app FROM t ORDER BY id, app;
-> 100 | app0
-> 101 | app1
-> 200 | app1
-> 600 | app2
-> 601 | NULL
INSERT INTO t REPLACE WHERE app = 'app2' OR app = 'app1' SELECT id + 1, app, d FROM t WHERE app = 'app2';
SELECT id, app FROM t ORDER BY id, app;
-> 100 | app0
-> 601 | NULL
-> 601 | app2
INSERT OVERWRITE t SELECT id + 1, app, d FROM t;
SELECT id, app FROM t ORDER BY id, app;
-> 101 | app0
-> 602 | NULL
-> 602 | app2
INSERT OVERWRITE t (id, app) VALUES (1, 'few');
SELECT * FROM t;
-> 1 | few | NULL
INSERT OVERWRITE t SELECT 'x', 'y', 'z';
-> error
SELECT * FROM t;
-> 1 | few | NULL
CREATE TABLE unparted (id int, s string) USING iceberg;
INSERT INTO unparted VALUES (1, 'a'), (2, 'b');
SET spark.sql.sources.partitionOverwriteMode = dynamic;
INSERT OVERWRITE unparted VALUES (3, 'c');
SELECT * FROM unparted;
-> 3 | c
SET spark.sql.sources.partitionOverwriteMode = static;
INSERT OVERWRITE unparted SELECT a.id + b.id, a.s FROM unparted a CROSS JOIN unparted b;
SELECT * FROM unparted;
-> 6 | c
CREATE TABLE by_day (id int, ts timestamp) USING iceberg PARTITIONED BY (days(ts));
INSERT INTO by_day VALUES (1, TIMESTAMP'2026-01-01 01:00:00'), (2, TIMESTAMP'2026-01-01 23:00:00'), (3, TIMESTAMP'2026-01-02 00:00:00');
SET spark.sql.sources.partitionOverwriteMode = dynamic;
INSERT OVERWRITE by_day VALUES (4, TIMESTAMP'2026-01-01 12:00:00');
SELECT id FROM by_day ORDER BY id;
-> 3
-> 4
CREATE TABLE replaced (id int, app string) USING iceberg PARTITIONED BY (app);
INSERT INTO replaced VALUES (1, 'a'), (2, 'b');
-- differs: Rows that REPLACE WHERE inserts must match its condition
INSERT INTO replaced REPLACE WHERE app = 'a' SELECT 3, 'b';
-> error
-- differs: Rows that REPLACE WHERE inserts must match its condition
SELECT * FROM replaced ORDER BY id;
-> 1 | a
-> 2 | b
CREATE TABLE by_rows (id int, app string) USING iceberg PARTITIONED BY (app);
INSERT INTO by_rows VALUES (1, 'a'), (2, 'a');
-- differs: REPLACE WHERE takes any condition, not only whole partitions
INSERT INTO by_rows REPLACE WHERE id = 2 SELECT 2, 'c';
-- differs: REPLACE WHERE takes any condition, not only whole partitions
SELECT * FROM by_rows ORDER BY id;
-> 1 | a
-> 2 | c

-- group: delete
CREATE TABLE t (id bigint, app string, n int) USING iceberg PARTITIONED BY (app);
INSERT INTO t SELECT id, concat('app', id % 4), if(id % 5 = 0, NULL, CAST(id AS int)) FROM range(40);
DELETE FROM t WHERE app = 'app0';
SELECT app, count(*) FROM t GROUP BY app ORDER BY app;
-> app1 | 10
-> app2 | 10
-> app3 | 10
DELETE FROM t WHERE id = 1 OR n > 37;
SELECT count(*), max(n) FROM t;
-> 27 | 37
DELETE FROM t WHERE n IS NULL AND app = 'app1';
SELECT count(*), count(n) FROM t;
-> 25 | 21
DELETE FROM t WHERE n < 0;
SELECT count(*) FROM t;
-> 25
-- differs: conditions have to be of type boolean, as Spark demands of tables that are read while rows are removed
DELETE FROM t WHERE NULL;
-> error
DELETE FROM t WHERE CAST(NULL AS boolean);
SELECT count(*) FROM t;
-> 25
DELETE FROM t AS x WHERE x.app LIKE 'app2%' AND x.id BETWEEN 10 AND 20;
SELECT count(*) FROM t WHERE app = 'app2';
-> 6
CREATE TABLE gone (id bigint, app string) USING iceberg;
INSERT INTO gone VALUES (2, 'app2'), (3, 'app3'), (NULL, NULL);
DELETE FROM t WHERE id IN (SELECT id FROM gone);
SELECT count(*), min(id) FROM t;
-> 20 | 6
DELETE FROM t WHERE id NOT IN (SELECT id FROM gone);
SELECT count(*) FROM t;
-> 20
DELETE FROM t WHERE EXISTS (SELECT 1 FROM gone g WHERE g.id + 2 = t.id - 2 AND g.app = t.app);
SELECT count(*), min(id) FROM t;
-> 18 | 9
DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM gone g WHERE g.app = t.app);
SELECT app, count(*) FROM t GROUP BY app ORDER BY app;
-> app2 | 4
-> app3 | 7
DELETE FROM t WHERE id = (SELECT max(id) FROM t);
SELECT count(*), max(id) FROM t;
-> 10 | 34
DELETE FROM t WHERE (id, app) IN (SELECT max(id), app FROM t GROUP BY app);
SELECT count(*), max(id) FROM t;
-> 8 | 30
DELETE FROM t WHERE id > (SELECT avg(id) FROM t x WHERE x.app = t.app);
SELECT app, count(*), max(id) FROM t GROUP BY app ORDER BY app;
-> app2 | 2 | 26
-> app3 | 3 | 19
DELETE FROM t WHERE id IN (SELECT id FROM gone WHERE false);
SELECT count(*) FROM t;
-> 5
DELETE FROM t WHERE id % 2 = 1 AND pmod(n, 3) = 0;
SELECT count(*) FROM t;
-> 5
DELETE FROM t WHERE id = NULL OR app <=> NULL;
SELECT count(*) FROM t;
-> 5
DELETE FROM t WHERE nope = 1;
-> error
DELETE FROM t WHERE id;
-> error
DELETE FROM t WHERE id = 'a';
-> error
DELETE FROM nope WHERE id = 1;
-> error
SELECT count(*) FROM t;
-> 5
DELETE FROM t;
SELECT count(*) FROM t;
-> 0
DELETE FROM t WHERE id = 1;
INSERT INTO t VALUES (1, 'again', 1);
SELECT * FROM t;
-> 1 | again | 1
CREATE TABLE empty (id int) USING iceberg;
DELETE FROM empty WHERE id = 1;
DELETE FROM empty WHERE id IN (SELECT id FROM gone);
DELETE FROM empty;
SELECT count(*) FROM empty;
-> 0
CREATE TABLE nulls (a int, b int) USING iceberg;
INSERT INTO nulls VALUES (1, 1), (1, NULL), (NULL, 1), (NULL, NULL), (2, 1);
DELETE FROM nulls WHERE NOT (a = 1 AND b = 1);
SELECT * FROM nulls ORDER BY a NULLS FIRST, b NULLS FIRST;
-> NULL | NULL
-> NULL | 1
-> 1 | NULL
-> 1 | 1
DELETE FROM nulls WHERE a <> 1 OR b IS NULL AND a IS NOT NULL;
SELECT * FROM nulls ORDER BY a NULLS FIRST, b NULLS FIRST;
-> NULL | NULL
-> NULL | 1
-> 1 | 1
DELETE FROM nulls WHERE coalesce(a, 5) = 5 AND CASE WHEN b = 1 THEN true END;
SELECT * FROM nulls ORDER BY a NULLS FIRST, b NULLS FIRST;
-> NULL | NULL
-> 1 | 1

-- group: truncate
CREATE TABLE t (id int, app string) USING iceberg PARTITIONED BY (app);
TRUNCATE TABLE t;
INSERT INTO t VALUES (1, 'a'), (2, 'b');
TRUNCATE TABLE t;
SELECT count(*) FROM t;
-> 0
INSERT INTO t VALUES (3, 'c');
SELECT * FROM t;
-> 3 | c
TRUNCATE TABLE nope;
-> error
-- differs: A statement that changes nothing makes no snapshot
SELECT operation FROM truncate.t.snapshots ORDER BY committed_at;
-> append
-> delete
-> append

-- group: ctas
CREATE TABLE source USING iceberg AS SELECT id, concat('app', id % 3) AS app, CAST(id AS double) / 4 AS x, DATE'2026-01-01' + CAST(id AS int) AS d FROM range(9);
DESCRIBE source;
-> id | bigint | NULL
-> app | string | NULL
-> x | double | NULL
-> d | date | NULL
SELECT count(*), sum(x), max(d) FROM source;
-> 9 | 9.0 | 2026-01-09
CREATE TABLE t USING iceberg PARTITIONED BY (app) TBLPROPERTIES ('made' = 'by ctas') AS SELECT * FROM source WHERE id < 5;
SELECT app, count(*) FROM t GROUP BY app ORDER BY app;
-> app0 | 2
-> app1 | 2
-> app2 | 1
SHOW TBLPROPERTIES t ('made');
-> made | by ctas
CREATE TABLE t USING iceberg AS SELECT 1 AS id;
-> error
CREATE TABLE IF NOT EXISTS t USING iceberg AS SELECT 1 AS id;
SELECT count(*) FROM t;
-> 5
CREATE TABLE nothing USING iceberg AS SELECT * FROM source WHERE false;
DESCRIBE nothing;
-> id | bigint | NULL
-> app | string | NULL
-> x | double | NULL
-> d | date | NULL
SELECT count(*) FROM nothing;
-> 0
CREATE OR REPLACE TABLE t USING iceberg PARTITIONED BY (bucket(4, id)) AS SELECT id, x FROM source;
DESCRIBE t;
-> id | bigint | NULL
-> x | double | NULL
-> |  |
-> # Partitioning |  |
-> Part 0 | bucket(4, id) |
SELECT count(*), sum(id) FROM t;
-> 9 | 36
SELECT x FROM t WHERE id = 7;
-> 1.75
REPLACE TABLE t USING iceberg AS SELECT id AS x, app AS id FROM source WHERE id > 6;
SELECT * FROM t ORDER BY x;
-> 7 | app1
-> 8 | app2
CREATE OR REPLACE TABLE t USING iceberg AS SELECT x * 2 AS x, id FROM t;
SELECT * FROM t ORDER BY x;
-> 14 | app1
-> 16 | app2
CREATE OR REPLACE TABLE t USING iceberg AS SELECT count(*) AS n FROM ctas.t.snapshots;
SELECT * FROM t;
-> 4
CREATE OR REPLACE TABLE fresh USING iceberg AS SELECT 1 AS id;
SELECT * FROM fresh;
-> 1
REPLACE TABLE nope USING iceberg AS SELECT 1 AS id;
-> error
CREATE OR REPLACE TABLE fresh (a int, b string) USING iceberg;
SELECT * FROM fresh;
INSERT INTO fresh VALUES (1, 'x');
SELECT * FROM fresh;
-> 1 | x
CREATE TABLE failed USING iceberg AS SELECT 1 AS id, raise_error('no') AS y;
-> error
SELECT * FROM failed;
-> error
CREATE OR REPLACE TABLE fresh USING iceberg AS SELECT raise_error('no') AS y;
-> error
SELECT * FROM fresh;
-> 1 | x
CREATE TABLE failed USING iceberg AS SELECT 1 AS a, 2 AS a;
-> error
CREATE TABLE failed USING iceberg AS SELECT CAST(NULL AS void) AS a;
-> error
CREATE TABLE failed (id int) USING iceberg AS SELECT 1 AS id;
-> error
CREATE TABLE failed USING iceberg AS SELECT * FROM nope;
-> error
SHOW TABLES;
-> ctas | fresh | false
-> ctas | nothing | false
-> ctas | source | false
-> ctas | t | false
CREATE TABLE literals USING iceberg AS SELECT 1 AS i, 2L AS l, 1.50 AS dec, 'x' AS s, true AS b, 1e0 AS dbl, CAST(1 AS float) AS f, X'0A' AS bin, array(1, 2) AS arr, map('k', 1) AS m, named_struct('a', 1, 'b', 'z') AS st;
DESCRIBE literals;
-> i | int | NULL
-> l | bigint | NULL
-> dec | decimal(3,2) | NULL
-> s | string | NULL
-> b | boolean | NULL
-> dbl | double | NULL
-> f | float | NULL
-> bin | binary | NULL
-> arr | array<int> | NULL
-> m | map<string,int> | NULL
-> st | struct<a:int,b:string> | NULL
SELECT * FROM literals;
-> 1 | 2 | 1.50 | x | true | 1.0 | 1.0 | b'\n' | [1, 2] | {k: 1} | (a=1, b=z)

-- group: columns
CREATE TABLE t (id int, name string, p struct<x: float, y: float>, l array<struct<a: int>>, m map<string, struct<v: int>>) USING iceberg;
INSERT INTO t VALUES (1, 'a', named_struct('x', 1.5, 'y', 2.5), array(named_struct('a', 1)), map('k', named_struct('v', 1)));
ALTER TABLE t ADD COLUMN added bigint COMMENT 'late' AFTER id;
ALTER TABLE t ADD COLUMNS (b boolean, d date);
ALTER TABLE t ADD COLUMN first_one string FIRST;
DESCRIBE t;
-> first_one | string | NULL
-> id | int | NULL
-> added | bigint | late
-> name | string | NULL
-> p | struct<x:float,y:float> | NULL
-> l | array<struct<a:int>> | NULL
-> m | map<string,struct<v:int>> | NULL
-> b | boolean | NULL
-> d | date | NULL
SELECT * FROM t;
-> NULL | 1 | NULL | a | (x=1.5, y=2.5) | [(a=1)] | {k: (v=1)} | NULL | NULL
ALTER TABLE t ADD COLUMN p.z double COMMENT 'deep';
ALTER TABLE t ADD COLUMN p.w int FIRST;
ALTER TABLE t ADD COLUMN l.element.b string;
ALTER TABLE t ADD COLUMN m.value.w string AFTER v;
SELECT p, l, m FROM t;
-> (w=NULL, x=1.5, y=2.5, z=NULL) | [(a=1, b=NULL)] | {k: (v=1, w=NULL)}
INSERT INTO t (id, p) VALUES (2, named_struct('w', 1, 'x', CAST(2 AS float), 'y', NULL, 'z', 3.5D));
SELECT id, p.w, p.z, p FROM t ORDER BY id;
-> 1 | NULL | NULL | (w=NULL, x=1.5, y=2.5, z=NULL)
-> 2 | 1 | 3.5 | (w=1, x=2.0, y=NULL, z=3.5)
ALTER TABLE t RENAME COLUMN name TO title;
ALTER TABLE t RENAME COLUMN p.x TO px;
SELECT title, p.px FROM t ORDER BY id;
-> a | 1.5
-> NULL | 2.0
SELECT name FROM t;
-> error
ALTER TABLE t ALTER COLUMN id TYPE bigint;
ALTER TABLE t ALTER COLUMN p.px TYPE double;
INSERT INTO t (id, p) VALUES (3000000000, named_struct('w', 1, 'px', 1e300D, 'y', NULL, 'z', 3.5D));
SELECT id, p.px FROM t WHERE id > 2 OR p.px < 2 ORDER BY id;
-> 1 | 1.5
-> 3000000000 | 1e+300
ALTER TABLE t ALTER COLUMN title COMMENT 'a comment';
ALTER TABLE t ALTER COLUMN p.y COMMENT 'nested comment';
ALTER TABLE t ALTER COLUMN d FIRST;
ALTER TABLE t ALTER COLUMN first_one AFTER title;
ALTER TABLE t ALTER COLUMN p.z FIRST;
DESCRIBE t;
-> d | date | NULL
-> id | bigint | NULL
-> added | bigint | late
-> title | string | a comment
-> first_one | string | NULL
-> p | struct<z:double,w:int,px:double,y:float> | NULL
-> l | array<struct<a:int,b:string>> | NULL
-> m | map<string,struct<v:int,w:string>> | NULL
-> b | boolean | NULL
SELECT * FROM t ORDER BY id;
-> NULL | 1 | NULL | a | NULL | (z=NULL, w=NULL, px=1.5, y=2.5) | [(a=1, b=NULL)] | {k: (v=1, w=NULL)} | NULL
-> NULL | 2 | NULL | NULL | NULL | (z=3.5, w=1, px=2.0, y=NULL) | NULL | NULL | NULL
-> NULL | 3000000000 | NULL | NULL | NULL | (z=3.5, w=1, px=1e+300, y=NULL) | NULL | NULL | NULL
ALTER TABLE t DROP COLUMN added;
ALTER TABLE t DROP COLUMNS (b, d);
ALTER TABLE t DROP COLUMN p.w;
ALTER TABLE t DROP COLUMN l.element.b;
ALTER TABLE t DROP COLUMN IF EXISTS nope;
DESCRIBE t;
-> id | bigint | NULL
-> title | string | a comment
-> first_one | string | NULL
-> p | struct<z:double,px:double,y:float> | NULL
-> l | array<struct<a:int>> | NULL
-> m | map<string,struct<v:int,w:string>> | NULL
SELECT * FROM t ORDER BY id;
-> 1 | a | NULL | (z=NULL, px=1.5, y=2.5) | [(a=1)] | {k: (v=1, w=NULL)}
-> 2 | NULL | NULL | (z=3.5, px=2.0, y=NULL) | NULL | NULL
-> 3000000000 | NULL | NULL | (z=3.5, px=1e+300, y=NULL) | NULL | NULL
ALTER TABLE t ADD COLUMN added string;
SELECT added FROM t ORDER BY id;
-> NULL
-> NULL
-> NULL
ALTER TABLE t DROP COLUMN title;
ALTER TABLE t ADD COLUMN title string;
SELECT id, title FROM t ORDER BY id;
-> 1 | NULL
-> 2 | NULL
-> 3000000000 | NULL
ALTER TABLE t ADD COLUMN id int;
-> error
ALTER TABLE t ADD COLUMN ID int;
-> error
ALTER TABLE t ADD COLUMN nope.x int;
-> error
ALTER TABLE t DROP COLUMN nope;
-> error
ALTER TABLE t RENAME COLUMN nope TO x;
-> error
ALTER TABLE t RENAME COLUMN title TO id;
-> error
ALTER TABLE t ALTER COLUMN id TYPE int;
-> error
ALTER TABLE t ALTER COLUMN id TYPE string;
-> error
ALTER TABLE t ALTER COLUMN id AFTER nope;
-> error
ALTER TABLE t ADD COLUMN required int NOT NULL;
-> error
ALTER TABLE t ADD COLUMNS (ok int, id int);
-> error
DESCRIBE t;
-> id | bigint | NULL
-> first_one | string | NULL
-> p | struct<z:double,px:double,y:float> | NULL
-> l | array<struct<a:int>> | NULL
-> m | map<string,struct<v:int,w:string>> | NULL
-> added | string | NULL
-> title | string | NULL
CREATE TABLE widened (id int, x float, dec decimal(4, 2), n int NOT NULL) USING iceberg;
INSERT INTO widened VALUES (1, 1.5, 12.34, 1);
ALTER TABLE widened ALTER COLUMN dec TYPE decimal(10, 2);
ALTER TABLE widened ALTER COLUMN x TYPE double;
ALTER TABLE widened ALTER COLUMN dec TYPE decimal(12, 4);
-> error
ALTER TABLE widened ALTER COLUMN n DROP NOT NULL;
INSERT INTO widened VALUES (2, 0.1, 12345678.90, NULL);
SELECT * FROM widened WHERE dec > 12 ORDER BY id;
-> 1 | 1.5 | 12.34 | 1
-> 2 | 0.1 | 12345678.90 | NULL
SELECT id FROM widened WHERE x = 1.5 AND dec = 12.34;
-> 1
ALTER TABLE widened ALTER COLUMN n SET NOT NULL;
-> error
ALTER TABLE widened ALTER COLUMN id TYPE bigint, id COMMENT 'both';
-> error
DESCRIBE widened;
-> id | int | NULL
-> x | double | NULL
-> dec | decimal(10,2) | NULL
-> n | int | NULL
CREATE TABLE parted (id int, app string, ts timestamp) USING iceberg PARTITIONED BY (app, days(ts));
INSERT INTO parted VALUES (1, 'a', TIMESTAMP'2026-01-01'), (2, 'b', TIMESTAMP'2026-01-02');
ALTER TABLE parted RENAME COLUMN app TO application;
SELECT id FROM parted WHERE application = 'a';
-> 1
INSERT INTO parted VALUES (3, 'a', TIMESTAMP'2026-01-03');
SELECT id FROM parted WHERE application = 'a' ORDER BY id;
-> 1
-> 3
ALTER TABLE parted ALTER COLUMN application FIRST;
ALTER TABLE parted ADD COLUMN app string AFTER application;
-> error
SELECT * FROM parted WHERE application = 'a' OR app = 'b' ORDER BY id;
-> error
DESCRIBE parted;
-> application | string | NULL
-> id | int | NULL
-> ts | timestamp | NULL
-> |  |
-> # Partitioning |  |
-> Part 0 | application |
-> Part 1 | days(ts) |

-- group: properties
CREATE TABLE t (id int) USING iceberg TBLPROPERTIES ('a' = '1', 'with.dots' = 'x');
SHOW TBLPROPERTIES t ('a');
-> a | 1
ALTER TABLE t SET TBLPROPERTIES ('b' = '2', 'a' = '3');
SHOW TBLPROPERTIES t ('a');
-> a | 3
SHOW TBLPROPERTIES t ('b');
-> b | 2
SHOW TBLPROPERTIES t ('with.dots');
-> with.dots | x
ALTER TABLE t UNSET TBLPROPERTIES ('a');
SHOW TBLPROPERTIES t ('a');
-> a | Table corpus.properties.t does not have property: a
ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('nope');
COMMENT ON TABLE t IS 'what it is';
SHOW TBLPROPERTIES t ('comment');
-> comment | Table corpus.properties.t does not have property: comment
ALTER TABLE t SET TBLPROPERTIES ('write.format.default' = 'parquet');
INSERT INTO t VALUES (1);
SELECT * FROM t;
-> 1
ALTER TABLE nope SET TBLPROPERTIES ('a' = '1');
-> error

-- group: rename
CREATE TABLE t (id int) USING iceberg;
INSERT INTO t VALUES (1);
ALTER TABLE t RENAME TO rename.t2;
SELECT * FROM t2;
-> 1
SELECT * FROM t;
-> error
INSERT INTO t2 VALUES (2);
SELECT * FROM rename.t2 ORDER BY id;
-> 1
-> 2
CREATE NAMESPACE elsewhere;
ALTER TABLE t2 RENAME TO elsewhere.t3;
SELECT * FROM elsewhere.t3 ORDER BY id;
-> 1
-> 2
CREATE TABLE taken (id int) USING iceberg;
ALTER TABLE elsewhere.t3 RENAME TO rename.taken;
-> error
ALTER TABLE nope RENAME TO rename.x;
-> error
SHOW TABLES IN elsewhere;
-> elsewhere | t3 | false
DROP TABLE elsewhere.t3;
DROP TABLE elsewhere.t3;
-> error
DROP TABLE IF EXISTS elsewhere.t3;
SELECT * FROM elsewhere.t3;
-> error
DROP TABLE taken PURGE;
SHOW TABLES;
CREATE TABLE t (other string) USING iceberg;
SELECT * FROM t;
DROP VIEW t;
-> error
-- differs: The namespace that a table is renamed into is created with it
ALTER TABLE t RENAME TO born_by_rename.t;

-- group: namespaces
CREATE NAMESPACE n1;
CREATE NAMESPACE n1;
-> error
CREATE NAMESPACE IF NOT EXISTS n1;
CREATE NAMESPACE n1.inner COMMENT 'nested';
CREATE NAMESPACE n2 WITH PROPERTIES ('color' = 'red');
SHOW NAMESPACES IN corpus.n1;
-> n1.inner
SHOW NAMESPACES IN corpus LIKE 'n*';
-> n1
-> n2
-> namespaces
CREATE TABLE n1.inner.t (id int) USING iceberg;
INSERT INTO n1.inner.t VALUES (1);
SELECT * FROM corpus.n1.inner.t;
-> 1
SHOW TABLES IN n1.inner;
-> n1.inner | t | false
SHOW TABLES IN n1;
SHOW TABLES IN nowhere;
-> error
DROP NAMESPACE n1.inner;
-> error
DROP TABLE n1.inner.t;
DROP NAMESPACE n1.inner;
DROP NAMESPACE n1;
DROP NAMESPACE n1;
-> error
DROP NAMESPACE IF EXISTS n1;
USE corpus.n2;
CREATE TABLE here (id int) USING iceberg;
SHOW TABLES;
-> n2 | here | false
SELECT current_catalog(), current_schema();
-> corpus | n2
ALTER NAMESPACE n2 SET PROPERTIES ('color' = 'blue', 'size' = 'xl');
DROP TABLE here;
DROP NAMESPACE n2;
USE corpus.nowhere;
-> error
SHOW NAMESPACES IN corpus LIKE 'n*';
-> namespaces

-- group: travel
CREATE TABLE t (id int, app string) USING iceberg PARTITIONED BY (app);
SELECT * FROM t VERSION AS OF 1;
-> error
INSERT INTO t VALUES (1, 'a');
-- let: first = SELECT snapshot_id FROM travel.t.snapshots
INSERT INTO t VALUES (2, 'b');
-- let: second = SELECT snapshot_id FROM travel.t.snapshots ORDER BY committed_at DESC LIMIT 1
-- let: at = SELECT CAST(max(committed_at) AS string) FROM travel.t.snapshots
DELETE FROM t WHERE id = 1;
ALTER TABLE t ADD COLUMN extra string;
ALTER TABLE t RENAME COLUMN id TO number;
INSERT INTO t VALUES (3, 'c', 'x');
SELECT * FROM t ORDER BY number;
-> 2 | b | NULL
-> 3 | c | x
SELECT * FROM t VERSION AS OF {first};
-> 1 | a
SELECT * FROM t VERSION AS OF {second} ORDER BY id;
-> 1 | a
-> 2 | b
SELECT * FROM t FOR VERSION AS OF {second} WHERE app = 'b';
-> 2 | b
SELECT id FROM t FOR SYSTEM_VERSION AS OF {second} WHERE id = 1;
-> 1
SELECT number FROM t VERSION AS OF {second};
-> error
SELECT * FROM t TIMESTAMP AS OF '{at}' ORDER BY id;
-> 1 | a
-> 2 | b
SELECT count(*) FROM t TIMESTAMP AS OF current_timestamp();
-> 2
SELECT count(*) FROM t TIMESTAMP AS OF timestamp('{at}') + INTERVAL 1 HOUR;
-> 2
SELECT * FROM t TIMESTAMP AS OF '2001-01-01';
-> error
SELECT * FROM t VERSION AS OF 12345;
-> error
SELECT * FROM t VERSION AS OF 'nope';
-> error
SELECT now.number, old.id FROM t now FULL JOIN t VERSION AS OF {first} old ON now.number = old.id ORDER BY 1, 2;
-> NULL | 1
-> 2 | NULL
-> 3 | NULL
SELECT * FROM t VERSION AS OF {second} WHERE id IN (SELECT number FROM t);
-> 2 | b
SELECT * FROM (SELECT id FROM t VERSION AS OF {second} EXCEPT SELECT number FROM t);
-> 1
INSERT INTO t SELECT id, app, 'restored' FROM t VERSION AS OF {first};
SELECT * FROM t ORDER BY number;
-> 1 | a | restored
-> 2 | b | NULL
-> 3 | c | x
CREATE OR REPLACE TABLE t USING iceberg AS SELECT 'new' AS app, 9 AS other;
SELECT * FROM t;
-> new | 9
SELECT * FROM t VERSION AS OF {second} ORDER BY id;
-> 1 | a
-> 2 | b
SELECT count(*) FROM travel.t.snapshots;
-> 6
DELETE FROM t VERSION AS OF {first} WHERE id = 1;
-> error

-- group: metadata
CREATE TABLE t (id int, app string) USING iceberg PARTITIONED BY (app);
SELECT count(*) FROM metadata.t.snapshots;
-> 0
SELECT count(*) FROM metadata.t.files;
-> 0
SELECT count(*) FROM metadata.t.history;
-> 0
SELECT count(*) FROM metadata.t.refs;
-> 0
SELECT count(*) FROM metadata.t.partitions;
-> 0
SELECT count(*) FROM metadata.t.manifests;
-> 0
INSERT INTO t VALUES (1, 'a'), (2, 'a');
INSERT INTO t VALUES (3, NULL);
DELETE FROM t WHERE app = 'a';
INSERT INTO t VALUES (4, 'd');
DELETE FROM t WHERE id = 4;
SELECT operation FROM metadata.t.snapshots ORDER BY committed_at;
-> append
-> append
-> delete
-> append
-> delete
SELECT summary['added-records'], summary['deleted-records'], summary['total-records'] FROM metadata.t.snapshots ORDER BY committed_at;
-> 2 | NULL | 2
-> 1 | NULL | 3
-> NULL | 2 | 1
-> 1 | NULL | 2
-> NULL | 1 | 1
SELECT count(DISTINCT snapshot_id), count(parent_id) FROM metadata.t.snapshots;
-> 5 | 4
SELECT is_current_ancestor, count(*) FROM metadata.t.history GROUP BY ALL;
-> true | 5
SELECT name, type, max_reference_age_in_ms FROM metadata.t.refs;
-> main | BRANCH | NULL
SELECT content, file_format, record_count, partition.app FROM metadata.t.files;
-> 0 | PARQUET | 1 | NULL
SELECT content, record_count, partition FROM metadata.t.data_files;
-> 0 | 1 | (app=NULL)
SELECT count(*) FROM metadata.t.delete_files;
-> 0
SELECT partition, record_count, file_count FROM metadata.t.partitions;
-> (app=NULL) | 1 | 1
SELECT status, data_file.record_count FROM metadata.t.entries WHERE status < 2;
-> 1 | 1
SELECT h.is_current_ancestor, s.operation FROM metadata.t.history h JOIN metadata.t.snapshots s USING (snapshot_id) ORDER BY s.committed_at;
-> true | append
-> true | append
-> true | delete
-> true | append
-> true | delete
SELECT content, existing_data_files_count + added_data_files_count FROM metadata.t.manifests WHERE existing_data_files_count + added_data_files_count > 0;
-> 0 | 1
SELECT operation FROM corpus.metadata.t.SNAPSHOTS LIMIT 1;
-> append
SELECT * FROM metadata.t.nope;
-> error
INSERT INTO metadata.t.snapshots SELECT * FROM metadata.t.snapshots;
-> error
DELETE FROM metadata.t.files;
-> error
DESCRIBE metadata.t.snapshots;
-> committed_at | timestamp | NULL
-> snapshot_id | bigint | NULL
-> parent_id | bigint | NULL
-> operation | string | NULL
-> manifest_list | string | NULL
-> summary | map<string,string> | NULL
DESCRIBE metadata.t.history;
-> made_current_at | timestamp | NULL
-> snapshot_id | bigint | NULL
-> parent_id | bigint | NULL
-> is_current_ancestor | boolean | NULL
DESCRIBE metadata.t.refs;
-> name | string | NULL
-> type | string | NULL
-> snapshot_id | bigint | NULL
-> max_reference_age_in_ms | bigint | NULL
-> min_snapshots_to_keep | int | NULL
-> max_snapshot_age_in_ms | bigint | NULL
CREATE TABLE plain (id int) USING iceberg;
INSERT INTO plain VALUES (1);
SELECT record_count, file_count FROM metadata.plain.partitions;
-> 1 | 1
SELECT record_count, readable_metrics.id.lower_bound, readable_metrics.id.upper_bound, readable_metrics.id.null_value_count FROM metadata.plain.files;
-> 1 | 1 | 1 | 0

-- group: queries
CREATE TABLE t (id int, app string, ts timestamp, n decimal(8, 2)) USING iceberg PARTITIONED BY (app);
CREATE TABLE apps (app string, owner string) USING iceberg;
INSERT INTO t SELECT id, concat('app', id % 4), TIMESTAMP'2026-01-01' + make_interval(0, 0, 0, CAST(id AS int)), CAST(id * 1.25 AS decimal(8, 2)) FROM range(20);
INSERT INTO apps VALUES ('app0', 'ann'), ('app1', 'bob'), ('app9', 'eve'), (NULL, 'nobody');
SELECT count(*) FROM t WHERE app = 'app1' AND id > 4;
-> 4
SELECT count(*) FROM t WHERE app IN ('app1', 'app2', NULL);
-> 10
SELECT count(*) FROM t WHERE app NOT IN ('app1', NULL);
-> 0
SELECT count(*) FROM t WHERE NOT (app = 'app1' OR n > 20);
-> 13
SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id + 1 WHERE a.app = 'app1' ORDER BY a.id;
-> 1 | 0
-> 5 | 4
-> 9 | 8
-> 13 | 12
-> 17 | 16
SELECT owner, count(id) FROM apps LEFT JOIN t USING (app) GROUP BY owner ORDER BY owner;
-> ann | 5
-> bob | 5
-> eve | 0
-> nobody | 0
SELECT count(*) FROM t JOIN apps ON t.app = apps.app WHERE owner = 'ann';
-> 5
SELECT id FROM t LEFT SEMI JOIN apps USING (app) ORDER BY id LIMIT 3;
-> 0
-> 1
-> 4
SELECT count(*) FROM t LEFT ANTI JOIN apps USING (app);
-> 10
WITH a AS (SELECT * FROM t WHERE app = 'app1'), b AS (SELECT * FROM a WHERE id < 10) SELECT count(*) FROM a JOIN b USING (id);
-> 3
WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 3) SELECT r.i, t.app FROM r JOIN t ON t.id = r.i ORDER BY 1;
-> 1 | app1
-> 2 | app2
-> 3 | app3
SELECT id FROM t WHERE n = (SELECT max(n) FROM t WHERE app = 'app2');
-> 18
SELECT id FROM t o WHERE n = (SELECT max(n) FROM t i WHERE i.app = o.app) ORDER BY id;
-> 16
-> 17
-> 18
-> 19
SELECT count(*) FROM t WHERE app IN (SELECT app FROM apps WHERE owner <> 'eve');
-> 10
SELECT count(*) FROM t WHERE app NOT IN (SELECT app FROM apps);
-> 0
SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM apps WHERE apps.app = t.app AND owner = 'bob');
-> 5
SELECT app, sum(n), avg(n), min(ts) FROM t GROUP BY app HAVING sum(n) > 50 ORDER BY app;
-> app1 | 56.25 | 11.250000 | 2026-01-02 00:00:00
-> app2 | 62.50 | 12.500000 | 2026-01-03 00:00:00
-> app3 | 68.75 | 13.750000 | 2026-01-04 00:00:00
SELECT * FROM (SELECT app, id, row_number() OVER (PARTITION BY app ORDER BY id DESC) AS place FROM t) WHERE place = 1 ORDER BY app;
-> app0 | 16 | 1
-> app1 | 17 | 1
-> app2 | 18 | 1
-> app3 | 19 | 1
SELECT id FROM t WHERE app = 'app1' UNION SELECT id FROM t WHERE id < 3 ORDER BY id;
-> 0
-> 1
-> 2
-> 5
-> 9
-> 13
-> 17
SELECT * FROM (SELECT app, id FROM t) PIVOT (count(id) FOR app IN ('app0', 'app1'));
-> 5 | 5
SELECT count(*) FROM t TABLESAMPLE (100 PERCENT);
-> 20
SELECT id, (SELECT owner FROM apps WHERE apps.app = t.app) FROM t WHERE id < 4 ORDER BY id;
-> 0 | ann
-> 1 | bob
-> 2 | NULL
-> 3 | NULL
SELECT t.id, x.col FROM t, LATERAL (SELECT t.id * 2 AS col) x WHERE t.id = 3;
-> 3 | 6
CREATE TEMPORARY VIEW v AS SELECT * FROM t WHERE app = 'app3';
SELECT count(*) FROM v WHERE id > 10;
-> 3
INSERT INTO t VALUES (99, 'app3', NULL, NULL);
SELECT max(id) FROM v;
-> 99
CREATE OR REPLACE TABLE apps USING iceberg AS SELECT 'app3' AS app, 1 AS rank;
SELECT count(*) FROM v JOIN apps USING (app);
-> 6
CACHE TABLE t;
INSERT INTO t VALUES (100, 'app3', NULL, NULL);
SELECT count(*), max(id) FROM t;
-> 22 | 100
DELETE FROM t WHERE id = 100;
SELECT count(*), max(id) FROM t;
-> 21 | 99
UNCACHE TABLE t;
SELECT max(id) FROM t;
-> 99
REFRESH TABLE t;
SELECT t.* FROM corpus.queries.t AS t WHERE t.id = 5 AND t.ts = TIMESTAMP'2026-01-06';
-> 5 | app1 | 2026-01-06 00:00:00 | 6.25
SELECT corpus.queries.t.id FROM corpus.queries.t WHERE corpus.queries.t.id = 5;
-> 5
SELECT nope FROM t;
-> error
SELECT count(*) FROM t WHERE id = 'abc';
-> error
SELECT count(*) FROM (TABLE t) WHERE ts IS NULL;
-> 1

-- group: null_partitions
CREATE TABLE t (id int, app string, d date, n int) USING iceberg PARTITIONED BY (app, d, bucket(2, n));
INSERT INTO t VALUES (1, NULL, NULL, NULL), (2, 'a', NULL, 1), (3, NULL, DATE'2026-01-01', NULL), (4, '', DATE'2026-01-01', 0), (5, 'null', DATE'2026-01-01', 7), (6, '__HIVE_DEFAULT_PARTITION__', DATE'1969-12-31', -7);
SELECT id FROM t WHERE app IS NULL ORDER BY id;
-> 1
-> 3
SELECT id FROM t WHERE app = '';
-> 4
SELECT id FROM t WHERE app = 'null' OR app = '__HIVE_DEFAULT_PARTITION__' ORDER BY id;
-> 5
-> 6
SELECT id FROM t WHERE app <=> NULL AND d <=> NULL;
-> 1
SELECT id FROM t WHERE app <> 'a' ORDER BY id;
-> 4
-> 5
-> 6
SELECT id FROM t WHERE NOT (app <=> 'a') ORDER BY id;
-> 1
-> 3
-> 4
-> 5
-> 6
SELECT id FROM t WHERE d < DATE'2026-01-01' OR n IS NULL ORDER BY id;
-> 1
-> 3
-> 6
SELECT id FROM t WHERE coalesce(app, 'none') = 'none' ORDER BY id;
-> 1
-> 3
SELECT a.id, b.id FROM t a JOIN t b ON a.app <=> b.app AND a.id < b.id ORDER BY 1, 2;
-> 1 | 3
DELETE FROM t WHERE app IS NULL AND d IS NULL;
SELECT count(*) FROM t;
-> 5
INSERT OVERWRITE t PARTITION (app = NULL) SELECT 9, DATE'2026-02-02', 3;
SELECT id, app FROM t ORDER BY id, app;
-> 2 | a
-> 4 |
-> 5 | null
-> 6 | __HIVE_DEFAULT_PARTITION__
-> 9 | NULL
SELECT partition.app, partition.d, record_count FROM null_partitions.t.partitions ORDER BY 1, 2;
-> NULL | 2026-02-02 | 1
-> | 2026-01-01 | 1
-> __HIVE_DEFAULT_PARTITION__ | 1969-12-31 | 1
-> a | NULL | 1
-> null | 2026-01-01 | 1

-- group: types
CREATE TABLE t (b boolean, i int, l bigint, f float, d double, dec decimal(20, 5), s string, bin binary, dt date, ts timestamp, ntz timestamp_ntz, arr array<string>, m map<int, string>, st struct<a: int, b: array<struct<c: date>>>) USING iceberg;
DESCRIBE t;
-> b | boolean | NULL
-> i | int | NULL
-> l | bigint | NULL
-> f | float | NULL
-> d | double | NULL
-> dec | decimal(20,5) | NULL
-> s | string | NULL
-> bin | binary | NULL
-> dt | date | NULL
-> ts | timestamp | NULL
-> ntz | timestamp_ntz | NULL
-> arr | array<string> | NULL
-> m | map<int,string> | NULL
-> st | struct<a:int,b:array<struct<c:date>>> | NULL
INSERT INTO t VALUES (true, 2147483647, -9223372036854775808, float('NaN'), double('-Infinity'), 123456789012345.12345, 'ümläut 日本 🎉', X'00FF', DATE'0001-01-01', TIMESTAMP'1969-12-31 23:59:59.999999', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', array('x', NULL, ''), map(1, 'one', 2, NULL), named_struct('a', NULL, 'b', array(named_struct('c', DATE'2026-01-01'))));
INSERT INTO t (i) VALUES (NULL);
INSERT INTO t SELECT false, -1, 0, -0.0F, 0.0D, -0.00001, '', X'', DATE'9999-12-31', TIMESTAMP'2026-03-29 02:30:00', TIMESTAMP_NTZ'2026-03-29 02:30:00', array(), map(), NULL;
SELECT b, i, l, f, d, dec, s, hex(bin), dt, CAST(ts AS string), CAST(ntz AS string), arr, m, st FROM t ORDER BY i;
-> NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL
-> false | -1 | 0 | -0.0 | 0.0 | -0.00001 |  |  | 9999-12-31 | 2026-03-29 02:30:00 | 2026-03-29 02:30:00 | [] | {} | NULL
-> true | 2147483647 | -9223372036854775808 | nan | -inf | 123456789012345.12345 | ümläut 日本 🎉 | 00FF | 0001-01-01 | 1969-12-31 23:59:59.999999 | 9999-12-31 23:59:59.999999 | [x, NULL, ] | {1: one, 2: NULL} | (a=NULL, b=[(c=2026-01-01)])
-- differs: Spark's own equality: -0.0 is 0.0, also where Iceberg's filters tell them apart
SELECT count(*) FROM t WHERE f = 0 AND d = -0.0D;
-> 1
SELECT count(*) FROM t WHERE f > 1e30 OR isnan(f);
-> 1
SELECT count(*) FROM t WHERE d < -1e300;
-> 1
SELECT count(*) FROM t WHERE dec = 123456789012345.12345;
-> 1
SELECT count(*) FROM t WHERE dec < 0;
-> 1
SELECT count(*) FROM t WHERE s LIKE 'ü%' AND bin = X'00FF';
-> 1
SELECT count(*) FROM t WHERE dt <= DATE'0001-01-01';
-> 1
SELECT count(*) FROM t WHERE ts < TIMESTAMP'1970-01-01';
-> 1
SELECT count(*) FROM t WHERE ntz > TIMESTAMP_NTZ'9999-12-31 23:59:59';
-> 1
SELECT count(*) FROM t WHERE size(arr) = 0 OR array_contains(arr, 'x');
-> 2
SELECT count(*) FROM t WHERE m[1] = 'one' AND st.b[0].c = DATE'2026-01-01';
-> 1
SELECT count(*) FROM t WHERE st IS NULL;
-> 2
CREATE TABLE small (b tinyint, s smallint, c char(3), v varchar(4)) USING iceberg;
DESCRIBE small;
-> b | int | NULL
-> s | int | NULL
-> c | string | NULL
-> v | string | NULL
INSERT INTO small VALUES (1, 2, 'ab', 'abcd');
SELECT b, s, concat(c, '|'), v FROM small;
-> 1 | 2 | ab| | abcd
CREATE TABLE by_types (id int, dec decimal(9, 2), f double, b boolean, bin binary, ntz timestamp_ntz, l bigint) USING iceberg PARTITIONED BY (dec, f, b, truncate(2, bin), hours(ntz), truncate(10, l));
INSERT INTO by_types VALUES (1, 1.50, 0.0, true, X'010203', TIMESTAMP_NTZ'2026-01-01 01:30:00', -5), (2, -1.50, double('NaN'), false, X'0102', TIMESTAMP_NTZ'1969-12-31 23:30:00', 15), (3, 0, -0.0D, NULL, X'', NULL, 9223372036854775807);
SELECT id FROM by_types WHERE dec = 1.5;
-> 1
-- differs: Spark's own equality: -0.0 is 0.0, also where Iceberg's filters tell them apart
SELECT id FROM by_types WHERE f = 0 ORDER BY id;
-> 1
-> 3
-- differs: Spark's own order: NaN is above all numbers, also where Iceberg's filters skip it
SELECT id FROM by_types WHERE f > 5;
-> 2
SELECT id FROM by_types WHERE bin = X'0102';
-> 2
SELECT id FROM by_types WHERE ntz < TIMESTAMP_NTZ'1970-01-01 00:00:00';
-> 2
SELECT id FROM by_types WHERE l < 0 OR l > 100 ORDER BY id;
-> 1
-> 3
SELECT id FROM by_types WHERE b IS NULL OR b ORDER BY id;
-> 1
-> 3

-- group: names
CREATE TABLE t (ID int, `two words` string, `a.b` int, `tick``tick` int, `UPPER` int, `select` int, `日本` int, s struct<`x.y`: int, `Z z`: int>) USING iceberg PARTITIONED BY (`two words`);
DESCRIBE t;
-> ID | int | NULL
-> two words | string | NULL
-> a.b | int | NULL
-> tick`tick | int | NULL
-> UPPER | int | NULL
-> select | int | NULL
-> 日本 | int | NULL
-> s | struct<x.y:int,Z z:int> | NULL
-> # Partition Information |  |
-> # col_name | data_type | comment
-> `two words` | string | NULL
INSERT INTO t VALUES (1, 'p q', 2, 3, 4, 5, 6, named_struct('x.y', 7, 'Z z', 8));
SELECT * FROM t WHERE `two words` = 'p q' AND `a.b` = 2 AND `tick``tick` = 3 AND upper = 4 AND `select` = 5 AND `日本` = 6;
-> 1 | p q | 2 | 3 | 4 | 5 | 6 | (x.y=7, Z z=8)
SELECT id, Id, ID FROM t WHERE iD = 1;
-> 1 | 1 | 1
-- differs: Names of tables are found in any case, as long as one table fits
SELECT s.`x.y`, S.`z Z` FROM T;
-> 7 | 8
SELECT `a.b` + `UPPER` AS `sum of` FROM t WHERE s.`x.y` = 7;
-> 6
INSERT INTO t (`a.b`, id, `TWO WORDS`) VALUES (20, 10, 'r');
INSERT INTO t BY NAME SELECT 30 AS `a.b`, 11 AS Id, 'r' AS `two words`;
INSERT OVERWRITE t PARTITION (`two words` = 'p q') (id) VALUES (12);
SELECT id, `two words`, `a.b` FROM t ORDER BY id;
-> 10 | r | 20
-> 11 | r | 30
-> 12 | p q | NULL
DELETE FROM t WHERE `A.B` = 20;
DELETE FROM t WHERE `a.b` IN (SELECT `a.b` FROM t WHERE id = 11);
SELECT id FROM t ORDER BY id;
-> 12
ALTER TABLE t RENAME COLUMN `a.b` TO `c.d`;
ALTER TABLE t ADD COLUMN `e.f` string AFTER ID;
ALTER TABLE t DROP COLUMN `tick``tick`;
ALTER TABLE t RENAME COLUMN `two words` TO words;
SELECT * FROM t WHERE words = 'p q';
-> 12 | NULL | p q | NULL | NULL | NULL | NULL | NULL
CREATE TABLE `my-table` (id int) USING iceberg;
INSERT INTO `my-table` VALUES (1);
SELECT `my-table`.id FROM `my-table`;
-> 1
SELECT count(*) FROM names.`my-table`.snapshots;
-> 1
CREATE TABLE fields (app_bucket int, app string, ts_day string, ts timestamp) USING iceberg PARTITIONED BY (bucket(4, app));
-> error
INSERT INTO fields VALUES (7, 'a', 'x', TIMESTAMP'2026-01-01'), (8, 'b', 'y', NULL);
-> error
SELECT app_bucket, ts_day FROM fields WHERE app = 'a' AND app_bucket = 7;
-> error
CREATE TABLE meta (`file` string, snapshot_id int, `_x` int) USING iceberg;
INSERT INTO meta VALUES ('f', 1, 2);
SELECT * FROM meta WHERE _x = 2;
-> f | 1 | 2
CREATE TABLE files (id int) USING iceberg;
INSERT INTO files VALUES (5);
SELECT id FROM files;
-> 5
SELECT id FROM names.files;
-> 5
SELECT count(*) FROM names.files.files;
-> 1
SET spark.sql.caseSensitive = true;
SELECT ID FROM `my-table`;
-> error
SELECT id FROM `my-table`;
-> 1

-- group: transforms
CREATE TABLE y (id int, ts timestamp) USING iceberg PARTITIONED BY (years(ts));
INSERT INTO y VALUES (1, TIMESTAMP'1969-06-01'), (2, TIMESTAMP'1970-01-01'), (3, TIMESTAMP'2026-12-31 23:59:59.999999'), (4, NULL);
SELECT id FROM y WHERE ts < TIMESTAMP'1970-01-01' ORDER BY id;
-> 1
SELECT id FROM y WHERE year(ts) = 2026;
-> 3
SELECT id FROM y WHERE ts >= TIMESTAMP'1970-01-01' ORDER BY id;
-> 2
-> 3
SELECT partition, record_count FROM transforms.y.partitions ORDER BY partition.ts_year;
-> (ts_year=NULL) | 1
-> (ts_year=-1) | 1
-> (ts_year=0) | 1
-> (ts_year=56) | 1
CREATE TABLE m (id int, d date) USING iceberg PARTITIONED BY (months(d));
INSERT INTO m VALUES (1, DATE'1969-12-31'), (2, DATE'1970-01-31'), (3, DATE'2026-02-28');
SELECT id FROM m WHERE d BETWEEN DATE'1969-12-01' AND DATE'1970-01-31' ORDER BY id;
-> 1
-> 2
SELECT partition, record_count FROM transforms.m.partitions ORDER BY partition.d_month;
-> (d_month=-1) | 1
-> (d_month=0) | 1
-> (d_month=673) | 1
CREATE TABLE d (id int, ts timestamp) USING iceberg PARTITIONED BY (days(ts));
INSERT INTO d VALUES (1, TIMESTAMP'1969-12-31 23:59:59.999999'), (2, TIMESTAMP'2026-05-01'), (3, TIMESTAMP'2026-05-01 23:59:59');
SELECT id FROM d WHERE CAST(ts AS date) = DATE'2026-05-01' ORDER BY id;
-> 2
-> 3
SELECT id FROM d WHERE date(ts) < DATE'1970-01-01';
-> 1
DELETE FROM d WHERE ts >= TIMESTAMP'2026-05-01' AND ts < TIMESTAMP'2026-05-02';
SELECT id FROM d;
-> 1
CREATE TABLE b (id int, l bigint, s string, dec decimal(9, 2)) USING iceberg PARTITIONED BY (bucket(8, l), bucket(4, s), bucket(3, dec));
INSERT INTO b SELECT CAST(id AS int), id, concat('s', id), id / 4 FROM range(30);
SELECT id FROM b WHERE l = 7 AND s = 's7';
-> 7
SELECT id FROM b WHERE dec = 1.75;
-> 7
SELECT count(*) FROM b WHERE s IN ('s1', 's2', 's99');
-> 2
SELECT sum(record_count) FROM transforms.b.partitions;
-> 30
SELECT partition.l_bucket, sum(record_count) FROM transforms.b.files GROUP BY 1 ORDER BY 1;
-> 0 | 2
-> 1 | 4
-> 2 | 2
-> 3 | 5
-> 4 | 8
-> 5 | 3
-> 6 | 2
-> 7 | 4
CREATE TABLE tr (id int, s string, n int, dec decimal(9, 2)) USING iceberg PARTITIONED BY (truncate(2, s), truncate(10, n), truncate(50, dec));
INSERT INTO tr VALUES (1, 'abc', 11, 1.49), (2, 'ab', -1, -0.01), (3, '日本語', -10, 0.50), (4, NULL, NULL, NULL), (5, 'a', 0, 0);
SELECT id FROM tr WHERE s LIKE 'ab%' ORDER BY id;
-> 1
-> 2
SELECT id FROM tr WHERE s = '日本語' AND n < 0;
-> 3
SELECT id FROM tr WHERE n BETWEEN -10 AND -1 ORDER BY id;
-> 2
-> 3
SELECT id FROM tr WHERE dec < 0.5 ORDER BY id;
-> 2
-> 5
SELECT partition.s_trunc, partition.n_trunc, partition.dec_trunc FROM transforms.tr.partitions ORDER BY 1, 2;
-> NULL | NULL | NULL
-> a | 0 | 0.00
-> ab | -10 | -0.50
-> ab | 10 | 1.00
-> 日本 | -10 | 0.50
INSERT OVERWRITE tr PARTITION (s = 'abc') SELECT 9, 9, 9;
-> error

-- group: zones
SET spark.sql.session.timeZone = Asia/Tokyo;
CREATE TABLE t (id int, ts timestamp, ntz timestamp_ntz) USING iceberg PARTITIONED BY (days(ts));
INSERT INTO t VALUES (1, TIMESTAMP'2026-05-01 08:00:00', TIMESTAMP_NTZ'2026-05-01 08:00:00'), (2, TIMESTAMP'2026-05-01 10:00:00', NULL);
SELECT id, CAST(ts AS string), CAST(ntz AS string) FROM t ORDER BY id;
-> 1 | 2026-05-01 08:00:00 | 2026-05-01 08:00:00
-> 2 | 2026-05-01 10:00:00 | NULL
SELECT id FROM t WHERE ts < '2026-05-01 09:00:00';
-> 1
SELECT id FROM t WHERE CAST(ts AS date) = DATE'2026-05-01' ORDER BY id;
-> 1
-> 2
SELECT id FROM t WHERE ts = ntz;
-> 1
SELECT record_count, partition.ts_day FROM zones.t.files ORDER BY 2;
-> 1 | 2026-04-30
-> 1 | 2026-05-01
SET spark.sql.session.timeZone = America/Los_Angeles;
SELECT id, CAST(ts AS string), CAST(ntz AS string) FROM t ORDER BY id;
-> 1 | 2026-04-30 16:00:00 | 2026-05-01 08:00:00
-> 2 | 2026-04-30 18:00:00 | NULL
SELECT id FROM t WHERE CAST(ts AS date) = DATE'2026-04-30' ORDER BY id;
-> 1
-> 2
SELECT id FROM t WHERE ts = '2026-04-30 16:00:00';
-> 1
DELETE FROM t WHERE ts < '2026-04-30 17:00:00';
SELECT id FROM t;
-> 2
INSERT INTO t SELECT 3, '2026-03-08 02:30:00', '2026-03-08 02:30:00';
-> error
SELECT id, CAST(ts AS string), CAST(ntz AS string) FROM t ORDER BY id;
-> 2 | 2026-04-30 18:00:00 | NULL
DELETE FROM t WHERE CAST(ts AS date) = DATE'2026-03-08';
SELECT id FROM t;
-> 2
INSERT OVERWRITE t SELECT 4, TIMESTAMP'2026-06-01 23:00:00', NULL;
SELECT count(*) FROM t WHERE ts >= DATE'2026-06-01' AND ts < DATE'2026-06-02';
-> 1
INSERT INTO t REPLACE WHERE ts >= TIMESTAMP'2026-06-02 00:00:00 UTC' AND ts < TIMESTAMP'2026-06-03 00:00:00 UTC' SELECT 5, TIMESTAMP'2026-06-01 20:00:00', NULL;
SELECT id FROM t;
-> 5

-- group: not_ansi
SET spark.sql.ansi.enabled = false;
CREATE TABLE t (id int, s string, n int) USING iceberg;
INSERT INTO t VALUES (1, '1', 0), (2, 'abc', NULL), (3, NULL, 3);
SELECT id FROM t WHERE s = 1;
-> 1
SELECT id, CAST(s AS int), 1 / n FROM t ORDER BY id;
-> 1 | 1 | NULL
-> 2 | NULL | NULL
-> 3 | NULL | 0.3333333333333333
SELECT id FROM t WHERE CAST(s AS int) IS NULL ORDER BY id;
-> 2
-> 3
DELETE FROM t WHERE CAST(s AS int) = 1;
SELECT id FROM t ORDER BY id;
-> 2
-> 3
DELETE FROM t WHERE 1 / n > 0;
SELECT id FROM t ORDER BY id;
-> 2
SET spark.sql.storeAssignmentPolicy = LEGACY;
INSERT INTO t SELECT 'x', 5, '7';
-> error
SET spark.sql.storeAssignmentPolicy = STRICT;
INSERT INTO t SELECT 1L, 'x', 5;
-> error
SELECT * FROM t ORDER BY s;
-> 2 | abc | NULL

-- group: errors
CREATE TABLE t (id int) USING iceberg;
SELECT * FROM nope;
-> error
SELECT * FROM corpus.nope.t;
-> error
SELECT * FROM nocatalog.x.t;
-> error
SELEC 1;
-> error
CREATE TABLE a.b.c.d (id int) USING iceberg;
CREATE TABLE corpus.fresh_namespace.t (id int) USING iceberg;
DROP TABLE nope;
-> error
CREATE TABLE x (id int) USING nosuchformat;
-> error
CREATE TABLE x (id int) CLUSTERED BY (id) INTO 4 BUCKETS;
ALTER TABLE t ADD PARTITION (id = 1);
-> error
ALTER TABLE t DROP PARTITION (id = 1);
-> error
LOAD DATA INPATH 'x' INTO TABLE t;
-> error
INSERT INTO t VALUES (1 / 0);
-> error
INSERT INTO t SELECT raise_error('stop') FROM range(5);
-> error
-- differs: conditions have to be of type boolean, as Spark demands of tables that are read while rows are removed
DELETE FROM t WHERE raise_error('stop');
-> error
SELECT * FROM t;
CALL corpus.system.nope('t');
-> error
CREATE INDEX i ON t (id);
-> error
SHOW PARTITIONS nope;
-> error
DESCRIBE nope;
-> error
TRUNCATE TABLE t PARTITION (id = 1);
-> error

-- group: rows
CREATE TABLE t (id bigint, app string, n int, d decimal(9,2), s struct<x: int, y: string>, m map<string, string>) USING iceberg {layout};
INSERT INTO t VALUES (1, 'a', 10, 1.10, named_struct('x', 1, 'y', 'p'), map('a', '1', 'z', '9')), (2, 'a', 20, 2.20, named_struct('x', 2, 'y', 'q'), map('b', '2'));
INSERT INTO t VALUES (3, 'b', 30, NULL, NULL, NULL), (4, 'c', NULL, 4.40, named_struct('x', NULL, 'y', 'r'), map()), (5, NULL, 50, 5.50, named_struct('x', 5, 'y', NULL), map('a', NULL));
UPDATE t SET n = n + 1;
SELECT id, app, n FROM t ORDER BY id;
-> 1 | a | 11
-> 2 | a | 21
-> 3 | b | 31
-> 4 | c | NULL
-> 5 | NULL | 51
UPDATE t SET n = 0, app = 'moved' WHERE id IN (2, 3);
SELECT id, app, n FROM t ORDER BY id;
-> 1 | a | 11
-> 2 | moved | 0
-> 3 | moved | 0
-> 4 | c | NULL
-> 5 | NULL | 51
UPDATE t SET app = NULL WHERE app = 'c';
SELECT id FROM t WHERE app IS NULL ORDER BY id;
-> 4
-> 5
UPDATE t SET s.x = id * 100, n = length(s.y) WHERE s.y IS NOT NULL;
SELECT id, s.x, s.y, n FROM t ORDER BY id;
-> 1 | 100 | p | 1
-> 2 | 200 | q | 1
-> 3 | NULL | NULL | 0
-> 4 | 400 | r | 1
-> 5 | 5 | NULL | 51
UPDATE t AS x SET m = map('a', x.app, 'new', CAST(x.id AS string)) WHERE x.m['a'] IS NOT NULL OR x.id = 4;
SELECT id, m['a'], m['new'], m['z'], size(m) FROM t ORDER BY id;
-> 1 | a | 1 | NULL | 2
-> 2 | NULL | NULL | NULL | 1
-> 3 | NULL | NULL | NULL | NULL
-> 4 | NULL | 4 | NULL | 2
-> 5 | NULL | NULL | NULL | 1
UPDATE t SET d = d * 2 WHERE id > 3;
SELECT id, d FROM t ORDER BY id;
-> 1 | 1.10
-> 2 | 2.20
-> 3 | NULL
-> 4 | 8.80
-> 5 | 11.00
UPDATE t SET n = 'text' WHERE id = 1;
-> error
UPDATE t SET nope = 1;
-> error
UPDATE t SET n = 1, n = 2;
-> error
UPDATE t SET n = (SELECT max(id) FROM t) WHERE id = (SELECT min(id) FROM t);
SELECT id, n FROM t WHERE id = 1;
-> 1 | 5
UPDATE t SET n = -1 WHERE id NOT IN (SELECT id FROM t WHERE id < 5);
SELECT id, n FROM t ORDER BY id;
-> 1 | 5
-> 2 | 1
-> 3 | 0
-> 4 | 1
-> 5 | -1
UPDATE t SET n = 7 WHERE EXISTS (SELECT 1 FROM t u WHERE u.id = t.id + 1 AND u.app = 'moved');
SELECT id, n FROM t ORDER BY id;
-> 1 | 7
-> 2 | 7
-> 3 | 0
-> 4 | 1
-> 5 | -1
UPDATE t SET n = 1 WHERE false;
UPDATE t SET n = 1 WHERE id = 999;
SELECT count(*), sum(n) FROM t;
-> 5 | 14
CREATE TABLE s (id bigint, app string, n int, op string) USING iceberg;
INSERT INTO s VALUES (1, 'a', 100, 'u'), (2, 'moved', 200, 'd'), (6, 'f', 600, 'i'), (7, 'g', 700, 'skip'), (NULL, 'null', 0, 'i');
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.op = 'd' THEN DELETE WHEN MATCHED THEN UPDATE SET t.n = s.n, t.app = s.app WHEN NOT MATCHED AND s.op = 'i' THEN INSERT (id, app, n) VALUES (s.id, s.app, s.n);
SELECT id, app, n, d, s.y, m['a'] FROM t ORDER BY id NULLS LAST, n;
-> 1 | a | 100 | 1.10 | p | a
-> 3 | moved | 0 | NULL | NULL | NULL
-> 4 | NULL | 1 | 8.80 | r | NULL
-> 5 | NULL | -1 | 11.00 | NULL | NULL
-> 6 | f | 600 | NULL | NULL | NULL
-> NULL | null | 0 | NULL | NULL | NULL
MERGE INTO t USING (SELECT id, n * 10 AS n FROM t WHERE id IN (1, 3, 6)) u ON t.id = u.id AND t.n <> u.n WHEN MATCHED THEN UPDATE SET n = u.n;
SELECT id, n FROM t ORDER BY id NULLS LAST;
-> 1 | 1000
-> 3 | 0
-> 4 | 1
-> 5 | -1
-> 6 | 6000
-> NULL | 0
MERGE INTO t USING s ON t.id = s.id AND t.app = s.app WHEN NOT MATCHED THEN INSERT (id, app, n) VALUES (s.id + 100, s.app, s.n);
SELECT id, app, n FROM t ORDER BY id NULLS LAST, app;
-> 1 | a | 1000
-> 3 | moved | 0
-> 4 | NULL | 1
-> 5 | NULL | -1
-> 6 | f | 6000
-> 102 | moved | 200
-> 107 | g | 700
-> NULL | null | 0
-> NULL | null | 0
MERGE INTO t USING s ON t.id = s.id + 100 WHEN MATCHED AND t.app = 'g' THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.id = 5 THEN UPDATE SET n = -5 WHEN NOT MATCHED BY SOURCE AND t.id IS NULL THEN DELETE;
SELECT id, app, n FROM t ORDER BY id NULLS LAST, app;
-> 1 | a | 1000
-> 3 | moved | 0
-> 4 | NULL | 1
-> 5 | NULL | -5
-> 6 | f | 6000
-> 102 | moved | 200
MERGE INTO t USING s ON t.app = s.app WHEN MATCHED THEN UPDATE SET n = s.n;
SELECT id, n FROM t ORDER BY id NULLS LAST, n;
-> 1 | 100
-> 3 | 200
-> 4 | 1
-> 5 | -5
-> 6 | 600
-> 102 | 200
INSERT INTO s VALUES (1, 'a', 101, 'again');
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n;
-> error
MERGE INTO t USING s ON t.id = s.id AND s.op <> 'again' WHEN MATCHED THEN UPDATE SET n = s.n + 1;
SELECT id, n FROM t WHERE id = 1;
-> 1 | 101
MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, nope) VALUES (1, 2);
-> error
MERGE INTO t USING nothing ON t.id = nothing.id WHEN MATCHED THEN DELETE;
-> error
MERGE INTO t USING s ON t.id <=> s.id WHEN MATCHED AND s.op = 'none' THEN DELETE WHEN NOT MATCHED AND s.id IS NULL THEN INSERT (id, app, n) VALUES (s.id, 'from null', s.n);
-> error
SELECT id, app FROM t WHERE app = 'from null';
MERGE INTO t USING (SELECT 1L AS id, map('a', 'merged') AS m, named_struct('x', 9, 'y', 'nine') AS s) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET m = u.m, s = u.s;
SELECT id, m['a'], size(m), s.x, s.y FROM t WHERE id = 1;
-> 1 | merged | 1 | 9 | nine
CREATE TABLE full_copy AS SELECT * FROM t;
MERGE INTO t USING full_copy u ON t.id = u.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT count(*), count(DISTINCT id) FROM t;
-> 6 | 6
MERGE INTO t USING (SELECT id, app FROM s LIMIT 0) u ON t.id = u.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id);
SELECT count(*) FROM t;
-> 6
DELETE FROM t WHERE id IN (SELECT id FROM s WHERE op = 'i');
MERGE INTO t USING (SELECT 1L AS id) u ON t.id = u.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE;
SELECT count(*) FROM t;
-> 0

-- group: rows_updated
CREATE TABLE t (id bigint, app string, n int, f double, ts timestamp, tags array<string>, s struct<x: int, y: string>, m map<string, string>) USING iceberg {layout};
INSERT INTO t VALUES (1, 'a', 10, 0.5D, TIMESTAMP '2026-05-01 10:00:00', array('p', 'q'), named_struct('x', 1, 'y', 'p'), map('a', '1', 'z', '9')), (2, 'a', 20, double('NaN'), TIMESTAMP '1969-12-31 23:59:59', array(), named_struct('x', 2, 'y', 'q'), map('b', '2'));
INSERT INTO t VALUES (3, 'b', 30, NULL, NULL, NULL, NULL, NULL), (4, 'c', NULL, -0.0D, TIMESTAMP '2026-05-02 00:00:00', array(NULL), named_struct('x', NULL, 'y', 'r'), map()), (5, NULL, 50, 1e300D, TIMESTAMP '2026-05-02 10:00:00', array('é'), named_struct('x', 5, 'y', NULL), map('a', NULL));
UPDATE t SET `APP` = concat(App, '-', CAST(ID AS string)) WHERE N >= 20;
SELECT id, app FROM t ORDER BY id;
-> 1 | a
-> 2 | a-2
-> 3 | b-3
-> 4 | c
-> 5 | NULL
UPDATE t SET n = CAST(id AS int), f = n WHERE n IS NOT NULL;
SELECT id, n, f FROM t ORDER BY id;
-> 1 | 1 | 10.0
-> 2 | 2 | 20.0
-> 3 | 3 | 30.0
-> 4 | NULL | -0.0
-> 5 | 5 | 50.0
UPDATE t SET app = 'nan' WHERE f + 0 = double('NaN') OR f + 0 = 0;
SELECT id, app FROM t ORDER BY id;
-> 1 | a
-> 2 | a-2
-> 3 | b-3
-> 4 | nan
-> 5 | NULL
UPDATE t SET ts = ts + INTERVAL 1 DAY, tags = array_append(tags, 'new') WHERE ts >= '2026-05-01' AND tags IS NOT NULL;
SELECT id, ts, tags FROM t ORDER BY id;
-> 1 | 2026-05-02 10:00:00 | [p, q, new]
-> 2 | 1969-12-31 23:59:59 | []
-> 3 | NULL | NULL
-> 4 | 2026-05-03 00:00:00 | [NULL, new]
-> 5 | 2026-05-03 10:00:00 | [é, new]
UPDATE t SET m = map_concat(m, map('b', CAST(n AS string))) WHERE NOT map_contains_key(m, 'b');
SELECT id, m['a'], m['b'], m['z'], size(m) FROM t ORDER BY id;
-> 1 | 1 | 1 | 9 | 3
-> 2 | NULL | 2 | NULL | 1
-> 3 | NULL | NULL | NULL | NULL
-> 4 | NULL | NULL | NULL | 1
-> 5 | NULL | 5 | NULL | 2
UPDATE t SET m = NULL, s = NULL WHERE s.y = 'q';
SELECT id, m, s FROM t WHERE id <= 3 ORDER BY id;
-> 1 | {a: 1, b: 1, z: 9} | (x=1, y=p)
-> 2 | NULL | NULL
-> 3 | NULL | NULL
UPDATE t SET s = named_struct('x', coalesce(s.x, 0) + 1, 'y', upper(s.y)) WHERE s IS NOT NULL;
SELECT id, s.x, s.y FROM t ORDER BY id;
-> 1 | 2 | P
-> 2 | NULL | NULL
-> 3 | NULL | NULL
-> 4 | 1 | R
-> 5 | 6 | NULL
UPDATE t SET n = 2147483647 + n;
-> error
UPDATE t SET n = CAST(app AS int) WHERE id IN (1, 3);
-> error
UPDATE t SET m = map('a', '1', 'a', '2') WHERE id = 1;
-> error
UPDATE t SET s.nope = 1;
-> error
SELECT id, n, m['a'], s.x FROM t ORDER BY id;
-> 1 | 1 | 1 | 2
-> 2 | 2 | NULL | NULL
-> 3 | 3 | NULL | NULL
-> 4 | NULL | NULL | 1
-> 5 | 5 | NULL | 6
UPDATE t SET n = NULL WHERE CASE WHEN id > 3 THEN n > 0 ELSE app LIKE '%a%' END;
SELECT id, n FROM t ORDER BY id;
-> 1 | NULL
-> 2 | NULL
-> 3 | 3
-> 4 | NULL
-> 5 | NULL
UPDATE t SET app = 'one' WHERE true;
SELECT count(*), count(DISTINCT app) FROM t;
-> 5 | 1
DELETE FROM t WHERE m['b'] = '1' OR f IS NULL;
SELECT id FROM t ORDER BY id;
-> 2
-> 3
-> 4
-> 5
DELETE FROM t WHERE ts < TIMESTAMP '2000-01-01 00:00:00';
DELETE FROM t WHERE id = 2;
INSERT INTO t (id, app, n) VALUES (2, 'again', 22), (6, 'one', 66);
UPDATE t SET n = n + 1, app = concat(app, '!') WHERE id IN (2, 4, 6);
SELECT id, app, n FROM t ORDER BY id;
-> 2 | again! | 23
-> 3 | one | 3
-> 4 | one! | NULL
-> 5 | one | NULL
-> 6 | one! | 67
DELETE FROM t WHERE app LIKE 'one%' AND id IN (SELECT max(id) FROM t);
UPDATE t SET id = id + 100;
SELECT id, app, n FROM t ORDER BY id;
-> 102 | again! | 23
-> 103 | one | 3
-> 104 | one! | NULL
-> 105 | one | NULL

-- group: rows_correlated
CREATE TABLE t (id bigint, app string, n int) USING iceberg PARTITIONED BY (app);
INSERT INTO t VALUES (1, 'a', 10), (2, 'a', 20), (3, NULL, 30);
UPDATE t SET app = (SELECT max(u.app) FROM t u WHERE u.id <> t.id) WHERE app IS NULL OR id = 1;
UPDATE t SET n = (SELECT count(*) FROM t u WHERE u.id < t.id);
SELECT id, app, n FROM t ORDER BY id;
-> 1 | a | 0
-> 2 | a | 1
-> 3 | a | 2

-- group: rows_keys
CREATE TABLE t (id bigint, app string, d decimal(9,2), f double, ts timestamp, day date, b binary, s struct<x: int, y: string>, m map<string, string>) USING iceberg {layout};
INSERT INTO t VALUES (1, 'a', 1.10, 0.0D, TIMESTAMP '2026-05-01 10:00:00', DATE '2026-05-01', X'00', named_struct('x', 1, 'y', 'p'), map('a', '1')), (2, 'b', -2.00, double('NaN'), TIMESTAMP '1969-12-31 23:59:59.999999', DATE '1969-12-31', X'', named_struct('x', NULL, 'y', 'q'), NULL), (3, NULL, NULL, -0.0D, NULL, NULL, NULL, NULL, map());
INSERT INTO t VALUES (4, 'a', 0.00, double('Infinity'), TIMESTAMP '2026-05-01 10:00:00.000001', DATE '0001-01-01', X'FFFF', named_struct('x', 4, 'y', NULL), map('a', NULL, 'c', '3')), (5, 'é', 9999999.99, 1e-300D, TIMESTAMP '9999-12-31 00:00:00', DATE '9999-12-31', X'C3A9', NULL, map('b', '5'));
MERGE INTO t USING (SELECT CAST(-2 AS decimal(9,2)) AS d) u ON t.d = u.d WHEN MATCHED THEN UPDATE SET app = 'by decimal';
MERGE INTO t USING (SELECT CAST('1.10000' AS decimal(20,5)) AS d) u ON t.d = u.d WHEN MATCHED THEN UPDATE SET app = 'by wide decimal' WHEN NOT MATCHED THEN INSERT (id) VALUES (-1);
SELECT id, app FROM t ORDER BY id;
-> 1 | by wide decimal
-> 2 | by decimal
-> 3 | NULL
-> 4 | a
-> 5 | é
MERGE INTO t USING (SELECT * FROM VALUES (double('NaN')), (-0.0D), (CAST(NULL AS double)) AS v(f)) u ON t.f = u.f WHEN MATCHED THEN UPDATE SET m = map('a', 'zero or NaN');
SELECT id, m['a'] FROM t ORDER BY id;
-> 1 | zero or NaN
-> 2 | zero or NaN
-> 3 | zero or NaN
-> 4 | NULL
-> 5 | NULL
MERGE INTO t USING (SELECT TIMESTAMP '1969-12-31 23:59:59.999999' AS ts) u ON t.ts = u.ts WHEN MATCHED THEN UPDATE SET app = 'by timestamp';
MERGE INTO t USING (SELECT DATE '2026-04-30' AS day) u ON t.day = date_add(u.day, 1) WHEN MATCHED THEN UPDATE SET app = 'by date', day = u.day;
MERGE INTO t USING (SELECT * FROM VALUES (X''), (X'C3A9') AS v(b)) u ON t.b = u.b WHEN MATCHED THEN UPDATE SET d = d + 1 - 1, app = concat(app, ' by binary');
SELECT id, app, day, d FROM t ORDER BY id;
-> 1 | by date | 2026-04-30 | 1.10
-> 2 | by timestamp by binary | 1969-12-31 | -2.00
-> 3 | NULL | NULL | NULL
-> 4 | a | 0001-01-01 | 0.00
-> 5 | é by binary | 9999-12-31 | 9999999.99
MERGE INTO t USING (SELECT named_struct('x', CAST(NULL AS int), 'y', 'q') AS s) u ON t.s = u.s WHEN MATCHED THEN UPDATE SET s.x = 2;
SELECT id, s.x, s.y FROM t ORDER BY id;
-> 1 | 1 | p
-> 2 | 2 | q
-> 3 | NULL | NULL
-> 4 | 4 | NULL
-> 5 | NULL | NULL
MERGE INTO t USING (SELECT * FROM VALUES (CAST(NULL AS string), 30L), ('é', 50L) AS v(app, n)) u ON t.app <=> u.app WHEN MATCHED THEN UPDATE SET id = u.n WHEN NOT MATCHED THEN INSERT (id, app) VALUES (u.n + 1, u.app);
SELECT id, app FROM t ORDER BY id;
-> 1 | by date
-> 2 | by timestamp by binary
-> 4 | a
-> 5 | é by binary
-> 30 | NULL
-> 51 | é
MERGE INTO t USING (SELECT 4L AS id, 'A' AS app) u ON t.id = u.id AND upper(t.app) = u.app AND t.d = 0 WHEN MATCHED THEN UPDATE SET app = 'by three';
MERGE INTO t USING (SELECT 1L AS low, 2L AS high) u ON t.id BETWEEN u.low AND u.high WHEN MATCHED THEN UPDATE SET d = t.d * 2;
SELECT id, app, d FROM t ORDER BY id;
-> 1 | by date | 2.20
-> 2 | by timestamp by binary | -4.00
-> 4 | by three | 0.00
-> 5 | é by binary | 9999999.99
-> 30 | NULL | NULL
-> 51 | é | NULL
MERGE INTO t USING (SELECT '4' AS id) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET m = map('b', 'by text');
MERGE INTO t USING (SELECT 'by text' AS v) u ON t.m['b'] = u.v WHEN MATCHED THEN UPDATE SET m = map('b', 'by hot key', 'd', '4');
SELECT id, m['a'], m['b'], m['d'] FROM t ORDER BY id;
-> 1 | zero or NaN | NULL | NULL
-> 2 | zero or NaN | NULL | NULL
-> 4 | NULL | by hot key | 4
-> 5 | NULL | 5 | NULL
-> 30 | zero or NaN | NULL | NULL
-> 51 | NULL | NULL | NULL
MERGE INTO t USING (SELECT 7L AS id, 'seven' AS app) u ON false WHEN NOT MATCHED THEN INSERT (app, id) VALUES (u.app, u.id);
MERGE INTO t USING (SELECT 7L AS id) u ON t.id = u.id AND t.app = 'eight' WHEN NOT MATCHED THEN INSERT (id, app) VALUES (u.id, 'eight') WHEN NOT MATCHED BY SOURCE AND t.app = 'seven' THEN DELETE;
SELECT id, app FROM t ORDER BY id;
-> 1 | by date
-> 2 | by timestamp by binary
-> 4 | by three
-> 5 | é by binary
-> 7 | eight
-> 30 | NULL
-> 51 | é
MERGE INTO t USING (SELECT 7 AS id, 'x' AS app) u ON t.id = u.id AND t.nope = 1 WHEN MATCHED THEN DELETE;
-> error
MERGE INTO t USING (SELECT 1 AS one) u ON true WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET app = 'all';
SELECT count(*), min(app), max(app), sum(id) FROM t;
-> 4 | all | all | 64

-- group: rows_clauses
CREATE TABLE t (id bigint, app string, n int, m map<string, string>) USING iceberg {layout};
INSERT INTO t VALUES (1, 'a', 10, map('a', '1')), (2, 'a', 20, NULL), (3, 'b', 30, map('b', '3', 'c', '3'));
INSERT INTO t VALUES (4, 'c', 40, map()), (5, NULL, NULL, map('a', NULL)), (NULL, 'null', 0, NULL);
CREATE TABLE s (n int, ID bigint, App string) USING iceberg;
INSERT INTO s VALUES (100, 1, 'a'), (200, 2, 'moved'), (300, 3, NULL), (700, 7, 'new'), (NULL, NULL, 'nobody');
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND t.n > 15 AND s.app IS NOT NULL THEN UPDATE SET app = s.app, n = t.n + s.n WHEN MATCHED AND s.app IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET n = -t.n WHEN NOT MATCHED AND s.n > 600 THEN INSERT (id, n) VALUES (s.id, s.n) WHEN NOT MATCHED THEN INSERT (app) VALUES (s.app);
SELECT id, app, n FROM t ORDER BY id NULLS LAST, app;
-> 1 | a | -10
-> 2 | moved | 220
-> 4 | c | 40
-> 5 | NULL | NULL
-> 7 | NULL | 700
-> NULL | nobody | NULL
-> NULL | null | 0
merge into t as Tgt using s as Src on TGT.Id = SRC.iD when matched then update set N = Src.N, APP = lower(TGT.app);
SELECT id, app, n FROM t ORDER BY id NULLS LAST, app;
-> 1 | a | 100
-> 2 | moved | 200
-> 4 | c | 40
-> 5 | NULL | NULL
-> 7 | NULL | 700
-> NULL | nobody | NULL
-> NULL | null | 0
MERGE INTO t USING (SELECT *, map('a', 'star') AS m FROM s WHERE id <> 3) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, app, n, m['a'] FROM t ORDER BY id NULLS LAST, app;
-> 1 | a | 100 | star
-> 2 | moved | 200 | star
-> 4 | c | 40 | NULL
-> 5 | NULL | NULL | NULL
-> 7 | new | 700 | star
-> NULL | nobody | NULL | NULL
-> NULL | null | 0 | NULL
MERGE INTO t USING (SELECT id, app FROM s) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET *;
-> error
MERGE INTO t USING (SELECT *, 1 AS more, map('x', 'y') AS m FROM s) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, app, n, m['x'] FROM t WHERE id IN (1, 2, 3, 7) ORDER BY id;
-> 1 | a | 100 | y
-> 2 | moved | 200 | y
-> 3 | NULL | 300 | y
-> 7 | new | 700 | y
INSERT INTO s VALUES (1, 1, 'twice'), (2, 1, 'thrice');
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.app = 'twice' THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id);
-> error
MERGE INTO t USING s ON t.id = s.id AND s.n > 2 WHEN MATCHED THEN UPDATE SET n = s.n;
MERGE INTO t USING s ON t.id = s.id AND s.app <> 'new' WHEN MATCHED THEN DELETE;
SELECT id, app, n FROM t ORDER BY id NULLS LAST, app;
-> 3 | NULL | 300
-> 4 | c | 40
-> 5 | NULL | NULL
-> 7 | new | 700
-> NULL | nobody | NULL
-> NULL | nobody | NULL
-> NULL | null | 0
MERGE INTO t USING (SELECT 4L AS id) u ON t.id = u.id WHEN NOT MATCHED BY SOURCE AND t.id > 100 THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.app IS NULL THEN UPDATE SET app = concat('was ', CAST(t.id AS string)) WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = coalesce(t.n, 0) + 1;
SELECT id, app, n FROM t ORDER BY id NULLS LAST, app;
-> 3 | was 3 | 300
-> 4 | c | 40
-> 5 | was 5 | NULL
-> 7 | new | 701
-> NULL | nobody | 1
-> NULL | nobody | 1
-> NULL | null | 1
MERGE INTO t USING t AS u ON t.id = u.id + 1 WHEN MATCHED THEN UPDATE SET n = u.n WHEN NOT MATCHED AND u.id = 7 THEN INSERT (id, app) VALUES (8, 'copied');
SELECT id, app, n FROM t ORDER BY id NULLS LAST, app;
-> 3 | was 3 | 300
-> 4 | c | 300
-> 5 | was 5 | 40
-> 7 | new | 701
-> 8 | copied | NULL
-> NULL | nobody | 1
-> NULL | nobody | 1
-> NULL | null | 1
MERGE INTO t USING (WITH best AS (SELECT id, max(n) AS n FROM s GROUP BY id) SELECT b.id, b.n FROM best b JOIN t ON t.id = b.id + 1) u ON t.id = u.id + 1 WHEN MATCHED THEN UPDATE SET n = u.n, m = map('a', CAST(u.n AS string));
SELECT id, n, m['a'] FROM t ORDER BY id NULLS LAST, n;
-> 3 | 200 | 200
-> 4 | 300 | 300
-> 5 | 40 | NULL
-> 7 | 701 | NULL
-> 8 | 700 | 700
-> NULL | 1 | NULL
-> NULL | 1 | NULL
-> NULL | 1 | NULL
MERGE INTO t USING (SELECT * FROM s WHERE false) u ON t.id = u.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id) WHEN NOT MATCHED BY SOURCE AND t.app = 'copied' THEN DELETE;
SELECT count(*) FROM t;
-> 7
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 'text';
-> error
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 1, id = 2;
-> error
MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = s.n;
-> error
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND raise_error('stop') IS NULL THEN DELETE WHEN NOT MATCHED AND raise_error('stop') IS NULL THEN INSERT (id) VALUES (9);
-> error
SELECT count(*), sum(id), sum(n) FROM t;
-> 7 | 19 | 1244

-- group: rows_sides
CREATE TABLE t (id bigint, app string, source string, target string, m map<string, string>) USING iceberg {layout};
INSERT INTO t VALUES (1, 'a', 'web', 'x', NULL), (2, 'b', 'app', 'y', map('a', 'b'));
INSERT INTO t VALUES (3, 'a', NULL, 'z', map());
MERGE INTO t AS target USING (SELECT 1L AS id, 'new' AS source, 'one' AS target) AS source ON target.id = source.id WHEN MATCHED THEN UPDATE SET target.source = source.source, target = source.target;
SELECT id, source, target FROM t ORDER BY id;
-> 1 | new | one
-> 2 | app | y
-> 3 | NULL | z
MERGE INTO t AS target USING (SELECT 'app' AS source, 'c' AS app) AS source ON target.source = source.source WHEN MATCHED AND target.target = 'y' THEN UPDATE SET app = source.app WHEN NOT MATCHED BY SOURCE AND target.source IS NULL THEN UPDATE SET source = 'none', app = target.target;
SELECT id, app, source, target FROM t ORDER BY id;
-> 1 | a | new | one
-> 2 | c | app | y
-> 3 | z | none | z
UPDATE t AS source SET source = source.target, target = source.source WHERE source.id > 1;
SELECT id, app, source, target FROM t ORDER BY id;
-> 1 | a | new | one
-> 2 | c | y | app
-> 3 | z | z | none
DELETE FROM t AS target WHERE target.target = 'app' OR target.source = 'z';
SELECT id, app, source, target FROM t ORDER BY id;
-> 1 | a | new | one

-- group: rows_widened
CREATE TABLE t (id bigint, v int, s struct<x: int>) USING iceberg;
INSERT INTO t VALUES (1, 1, named_struct('x', 1)), (2, 2, NULL);
MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 2L AS id, 'two' AS note) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET note = u.note WHEN NOT MATCHED THEN INSERT (id, note) VALUES (u.id, u.note);
SELECT * FROM t ORDER BY id;
-> 1 | 1 | (x=1) | NULL
-> 2 | 2 | NULL | two
MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT * FROM VALUES (1L, 5000000000L, named_struct('x', 9, 'y', 'inside'), 'one', true), (3L, 3L, NULL, 'three', NULL) AS v(id, v, s, note, flag)) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT id, v, s, note, flag FROM t ORDER BY id;
-> 1 | 5000000000 | (x=9, y=inside) | one | true
-> 2 | 2 | NULL | two | NULL
-> 3 | 3 | NULL | three | NULL
MERGE INTO t USING (SELECT 1L AS id, 2L AS v, CAST(NULL AS struct<x: int, y: string>) AS s, 'n' AS note, false AS flag, 1 AS ignored) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET *;
SELECT * FROM t WHERE id = 1;
-> 1 | 2 | NULL | n | false
MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1L AS id, 'text' AS v) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET v = u.v;
-> error
SELECT count(*) FROM t;
-> 3

-- group: rows_evolved
CREATE TABLE t (id bigint, old string, n int, gone int) USING iceberg PARTITIONED BY (old);
INSERT INTO t VALUES (1, 'a', 1, 0), (2, 'b', 2, 0);
ALTER TABLE t RENAME COLUMN old TO app;
ALTER TABLE t DROP COLUMN gone;
ALTER TABLE t ADD COLUMN late double;
ALTER TABLE t ALTER COLUMN n TYPE bigint;
INSERT INTO t VALUES (3, 'c', 3000000000, 0.5);
UPDATE t SET late = id / 2 WHERE app < 'c';
SELECT * FROM t ORDER BY id;
-> 1 | a | 1 | 0.5
-> 2 | b | 2 | 1.0
-> 3 | c | 3000000000 | 0.5
MERGE INTO t USING (SELECT * FROM VALUES (2L, 'z', 20L, 2.0D), (4L, 'd', 40L, 4.0D) AS v(id, app, n, late)) v ON t.id = v.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM t ORDER BY id;
-> 1 | a | 1 | 0.5
-> 2 | z | 20 | 2.0
-> 3 | c | 3000000000 | 0.5
-> 4 | d | 40 | 4.0
ALTER TABLE t ADD COLUMN nested struct<a: int, b: string>;
UPDATE t SET nested = named_struct('a', CAST(id AS int), 'b', app) WHERE id > 2;
UPDATE t SET nested.b = 'x' WHERE nested.a = 3;
SELECT id, nested.a, nested.b FROM t ORDER BY id;
-> 1 | NULL | NULL
-> 2 | NULL | NULL
-> 3 | 3 | x
-> 4 | 4 | d
MERGE INTO t USING (SELECT 3L AS id) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET nested.a = 33 WHEN NOT MATCHED BY SOURCE AND app = 'a' THEN DELETE;
SELECT id, app, nested.a, nested.b FROM t ORDER BY id;
-> 2 | z | NULL | NULL
-> 3 | c | 33 | x
-> 4 | d | 4 | d
CREATE TABLE strict (id bigint NOT NULL, v string NOT NULL) USING iceberg;
INSERT INTO strict VALUES (1, 'a');
UPDATE strict SET v = NULL;
-> error
MERGE INTO strict USING (SELECT 2L AS id) u ON strict.id = u.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (u.id, NULL);
-> error
MERGE INTO strict USING (SELECT 2L AS id, 'b' AS v) u ON strict.id = u.id WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM strict ORDER BY id;
-> 1 | a
-> 2 | b

-- group: hidden_columns
CREATE TABLE t (id bigint, app string, ts timestamp) USING iceberg PARTITIONED BY (app, days(ts), bucket(4, id), truncate(1, app));
INSERT INTO t VALUES (1, 'a', TIMESTAMP '2026-05-01 10:00:00'), (2, NULL, NULL), (3, 'bb', TIMESTAMP '1969-12-31 23:00:00');
SELECT id, _spec_id, _partition FROM t;
-> 1 | 0 | (app=a, ts_day=2026-05-01, id_bucket=0, app_trunc=a)
-> 2 | 0 | (app=NULL, ts_day=NULL, id_bucket=0, app_trunc=NULL)
-> 3 | 0 | (app=bb, ts_day=1969-12-31, id_bucket=3, app_trunc=b)
SELECT id, _pos, _partition.app_trunc FROM t WHERE id > 1;
-> 2 | 0 | NULL
-> 3 | 0 | b
SELECT id FROM t WHERE _partition.app = 'a';
-> 1
SELECT id FROM t WHERE _partition.ts_day < DATE '1970-01-01';
-> 3
SELECT count(*) FROM t WHERE _partition.app IS NULL;
-> 1
SELECT count(*) FROM t WHERE _spec_id = 0 AND _partition.id_bucket >= 0;
-> 3
SELECT count(*) FROM t WHERE _spec_id > 0;
-> 0
SELECT _partition.app, count(*) FROM t GROUP BY _partition.app;
-> NULL | 1
-> a | 1
-> bb | 1
SELECT a.id FROM t a JOIN t b ON a._partition.app = b.app WHERE b._spec_id = 0;
-> 1
-> 3
ALTER TABLE t RENAME COLUMN app TO application;
SELECT id, _partition.app FROM t WHERE application = 'bb';
-> 3 | bb
-- differs: rows are removed by hidden columns as they are selected by them
DELETE FROM t WHERE _partition.app = 'a';
-- differs: the one of that partition is gone
SELECT id FROM t;
-> 2
-> 3
SELECT _partition.nope FROM t;
-> error
CREATE TABLE hours_and_months (h timestamp, m date, y date, d decimal(10, 2)) USING iceberg PARTITIONED BY (hours(h), months(m), years(y), truncate(10, d));
INSERT INTO hours_and_months VALUES (TIMESTAMP '2026-05-01 10:30:00', DATE '2026-05-01', DATE '1969-01-01', 12.34);
SELECT _partition FROM hours_and_months;
-> (h_hour=493786, m_month=676, y_year=-1, d_trunc=12.30)
CREATE TABLE plain (id int) USING iceberg;
INSERT INTO plain VALUES (1);
SELECT id, _spec_id FROM plain;
-> 1 | 0
CREATE TABLE own (`_spec_id` int, app string) USING iceberg PARTITIONED BY (app);
INSERT INTO own VALUES (7, 'a'), (8, 'b');
SELECT _partition.app FROM own WHERE app = 'b';
-> b
