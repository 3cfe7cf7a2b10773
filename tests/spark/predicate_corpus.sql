-- Predicates written by hand, by what may go wrong with them, over the columns of predicate_rows.py; one a line.

--- comparisons
i < 99999999999999999999
i >= -99999999999999999999
l <= 9223372036854775807.5
l > 9223372036854775807.5
NOT l > 9223372036854775808
99999999999999999999 > ti
l < 9223372036854775808 AND b
i > 99999999999999999999 IS NULL
st.a < 99999999999999999999
i <=> 99999999999999999999
l < 1.5
l >= -1.5
i <= 2.0
ti > 0.5
2.5 > i
l BETWEEN -1.5 AND 9223372036854775808
s > 'a' AND s > 1 IS NULL
b
NOT b
b = TRUE
b <> TRUE
b <=> NULL
NULL <=> b
b = c
b < c
b >= TRUE
b == c
b != c
i = 5
5 = i
5 < i
i <> 5
i != 5
NOT i = 5
! b
!(i = 5)
i <=> 5
i <=> NULL
NOT i <=> 5
i = NULL
i <> NULL
NULL = i
NULL
TRUE
FALSE
NOT NULL
NULL = NULL
NULL <=> NULL
i = i
i <=> j
i < j
l = i
ti = si
f = d
f < d
d = CAST('NaN' AS double)
d > CAST('Infinity' AS double)
d = 0.0D
d = -0.0D
d < 0.0D
f = -0.0F
d IN (0.0D, CAST('NaN' AS double))
d NOT IN (-0.0D)
f = 0.1
f = 0.1D
f = 0.1F
d = 0.1
d = 0.1F
d <=> -0.0D
f >= d
d <> d
f BETWEEN 0 AND 1.5
isnan(d) OR d > 1
bin = X'61'
bin > X'7F'
bin IN (X'', X'00', NULL)
bin <=> X'FF'
bin BETWEEN X'00' AND X'80'
X'6' = X'06'
`order by` = 5
`order by` IS NULL
`ORDER BY` > 1
I = 5
S = 'a' AND St.A = 1
ST.IN.X > 0
1 = 1
1 = 2
i > 1 = b
(i > 1) = (j > 1)
(i IS NULL) = (j IS NULL)
b = (i = j)
i = j IS NULL
i > 1 IS TRUE
dt = dt
ts <=> ts
b AND b
b OR NOT b
b AND NOT b
i = 2147483647
i = 2147483648
i > -2147483648
l = 9223372036854775807
l = -9223372036854775808
l > 9223372036854775807
l < 9223372036854775808
l = 9223372036854775808
l > -9223372036854775809
i <> 99999999999999999999
ti < 128
ti > -129
ti = 1000

--- across types
ntz IN (TIMESTAMP '1970-01-01 00:00:00', '2024-03-10 02:30:00 UTC')
ntz IN (TIMESTAMP_NTZ '1970-01-01 00:00:00', '2024-03-10 02:30:00Z')
ntz IN (TIMESTAMP '2024-11-03 01:30:00Z', '2024-03-10 02:30:00Z', NULL)
dt IN (TIMESTAMP '1970-01-01 12:00:00', '2024-03-10 12:00:00')
dt IN (CAST(ts AS date), '2024-03-10 12:00:00')
dt IN (ts, '2024-03-10 12:00:00')
s IN (t, 1)
s IN (i, '01')
i IN (j, 1.5, '5')
l IN (d, 9007199254740993)
q IN (i, 9007199254740992D)
p IN (i, 1.5D, '1.5')
s IN (CAST('a' AS string), 1)
s IN (upper('1'), 1.0)
i NOT IN (j, '1')
b IN (c, 'true')
f IN (d, 0.1)
f IN (CAST(0.1 AS float), 0.1)
i IN (-1, CAST('5' AS int), 2.5)
f IN (0.1F, 1)
f IN (0.1F, 16777217)
f IN (0.1, 1.5F)
coalesce(f, 1) = 1
coalesce(l, f) > 1
coalesce(i, 1.5) = 1.5
if(b, l, f) = l
CASE WHEN b THEN p ELSE q END = 1.5
coalesce(p, 12345.678) > 1
coalesce(r, 12345678901234567890123456789.5) > 1
coalesce(dt, ts) > TIMESTAMP '2024-01-01'
coalesce(ts, ntz) = TIMESTAMP '1970-01-01 00:00:00Z'
coalesce(ntz, dt) < '2024-01-01'
coalesce(s, 5) = 5
coalesce(dt, s) = '2024-03-10'
if(b, s, dt) = '2024-03-10'
greatest(dt, ts) = ts
greatest(s, 1) = 1
greatest(i, 1.5) = 1.5
least(p, q, i) < 1
nullif(f, 1) IS NULL
nullif(i, 1.5) = 1
nullif(s, 1) IS NULL
nullif(dt, '2024-03-10') IS NULL
if(b, 1, 'a') = 1
CASE WHEN b THEN 1 ELSE '2' END = 2
CASE dt WHEN '2024-03-10' THEN 1 ELSE 2 END = 1
CASE i WHEN 1.5 THEN TRUE WHEN '5' THEN FALSE END
CASE s WHEN 1 THEN TRUE END
nvl(i, 2.5) > 2
concat(i, s) = '5a'
concat(dt, '') = '2024-03-10'
upper(i) = '5'
length(i) = 1
year('2024-03-10') = year(dt)
year(s) = 2024
hour(s) = 2
datediff(s, dt) = 0
dt + '1' > dt
date_add(dt, '1') > dt
date_add('2024-03-09', 1) = dt
substring(i, 1, 1) = '5'
startswith(i, '5')
i = '5' AND s = 'a'
i BETWEEN '1' AND 5.5
dt BETWEEN '2024-01-01' AND TIMESTAMP '2024-06-01'
s BETWEEN 1 AND 5
s BETWEEN 'a' AND DATE '2024-01-01'
ts BETWEEN DATE '2024-01-01' AND '2024-12-31 23:59:59'
i = 5.0
i > 1.5
i = 1.5D
i < 2e0
i = '5'
i = ' 5 '
i > '-1'
i <=> '5'
i IN ('1', '5')
ti = 300
ti < 300
ti <> -129
si = 70000
si <= 32767
ti = 1L
si = 5S
l = 5Y
i = 5L
ti IN (1, 1000)
ti IN (1, 2.5)
ti = 5.00
si BETWEEN -100000 AND 100000
si = 1.0
l = 9007199254740993
l = 9007199254740993.0
l = 9007199254740992.0D
l = 9007199254740992D
d = 9007199254740993
d = l
f = l
d = q
q = l
q = i
p = i
r = l
r = i
p = q
q = r
p = 1.5
p = 1.50
p = 1.500
p = 1.5001
p > 1
p = 1
p = '1.5'
p > 1000
p < 1e3
p = 1.5D
p = 1.5F
p IN (1, 1.5, 2.001)
p IN (1, NULL, 5D)
q = 9007199254740993
q = 9007199254740992
q = 9007199254740993.0000001
q = '9007199254740993'
r = 1
r = 0.0000000001
r > 0.00000000001
r = 5L
r <=> 1.5
q > 99999999999999999.9985
p = 123456789012345678901234567890
r < 99999999999999999999999999999999999999
i = 1.50BD
i < 5BD
l < 1.5BD
s = 1
s > 1
1 < s
s = 1.5
s = 1.5D
s = TRUE
s = DATE '2024-03-10'
s <= DATE '2024-03-10'
s = TIMESTAMP '2024-03-10 02:30:00'
s = i
s = l
s = d
s = p
s = b
s = dt
s = ts
s IN (1, 2)
s IN ('1', 5)
s IN (1.5, '1')
s IN ('a', NULL)
t IN ('2024-03-10', DATE '2024-03-10')
b = 'true'
b = ' T '
b = 'no'
b IN ('yes', FALSE)
dt = '2024-03-10'
dt > '2024'
dt >= '2024-3'
dt < ' 2024-03-10 '
dt = '2024-03-10 12:00:00'
dt BETWEEN '1970-01-01' AND '2024-11-03'
dt IN ('2024-03-10', '1970-01-01', NULL)
dt IN (DATE '2024-03-10', '1970-01-01')
dt = TIMESTAMP '2024-03-10 00:00:00'
dt < ts
dt = ntz
ts = ntz
ts > ntz
dt > TIMESTAMP_NTZ '2024-03-10 00:00:00'
dt IN (TIMESTAMP '2024-03-10 00:00:00', DATE '1970-01-01')
ts = '2024-03-10'
ts >= '2024-03-10 02:30:00'
ts = '2024-11-03 01:30:00'
ts < '2024-11-03T01:30:00.5Z'
ts <= '2024-11-03 01:30:00 America/New_York'
ts > DATE '2024-03-10'
ts = DATE '1970-01-01'
ts IN ('1970-01-01 00:00:00Z', '2024-11-03 05:30:00+00:00')
ts BETWEEN '2024-03-10' AND '2024-11-04'
ntz = '2024-03-10 02:30:00'
ntz >= DATE '2024-11-03'
ntz < TIMESTAMP '2024-03-10 02:30:00'
ntz = TIMESTAMP_NTZ '2024-03-10 02:30:00'
ntz IN ('2024-11-03 01:30:00', TIMESTAMP '1970-01-01 00:00:00')
ts = TIMESTAMP_NTZ '2024-03-10 02:30:00'
ts < TIMESTAMP_LTZ '2024-03-10 02:30:00'
ntz > '2024-03-10 02:30:00Z'
bin = 'a'
bin > 'a'
s = X'61'
st.a = '5'
st.in.x > 1.5
mi['k'] = '5'
mi['k'] > 1.5
m['k'] = 1
m['k'] > DATE '2024-01-01'
NULL IN (1, 2)
NULL IN (NULL)
1 IN (1, NULL)
2 IN (1, NULL)
i + 0.5 = 1.5
ti + 1000 > 5
i = p + 1
i / 2 = 2.5
l * 1.5 > 3
i = 5 AND i = 5L AND i = 5.0
i = 5 OR i = 5.0 OR i = '5'
ti = 1 OR ti = 1L
ti = 5Y OR ti = 300
i IN (1, 5L)
i IN (1Y, 2.5, 5D)
i NOT IN (1, 2147483648)
l IN (5, 9223372036854775807)
i IN (j, 5)
i IN (l, 5, '1')
i IN (j)
i NOT IN (j, NULL)
s IN (t, 'a', upper(t))
dt IN (CAST(ts AS date), DATE '1970-01-01')
p IN (i, 1.5)

--- lists and ranges
i IN (1)
i IN (1, 1, 1)
i IN (1, 2, NULL)
i NOT IN (1, 2, NULL)
NOT i IN (1, 2)
NOT (i NOT IN (1, NULL))
i IN (NULL)
i NOT IN (NULL)
i NOT IN (NULL, NULL)
i BETWEEN 1 AND 5
i BETWEEN 5 AND 1
i NOT BETWEEN 1 AND 5
NOT i BETWEEN 1 AND 5 AND b
i BETWEEN NULL AND 5
i NOT BETWEEN NULL AND 5
i BETWEEN 1 AND NULL
i NOT BETWEEN 5 AND 1
i BETWEEN j AND l
5 BETWEEN i AND l
i + 1 BETWEEN 1 + 1 AND 5 * 2 AND b
i BETWEEN 1 AND 5 OR b
s BETWEEN 'a' AND 'b'
s NOT BETWEEN 'A' AND 'a%'
b IN (TRUE)
b IN (TRUE, FALSE)
b IN (TRUE, NULL)
b NOT IN (FALSE, NULL)
i = 1 OR i = 2 OR i IS NULL
i = 1 OR i IN (2, NULL)
NOT (i = 1 OR i = 2)
i <> 1 AND i <> 2
i IN (1, 2) OR i IN (2, 3) OR i = 3
i NOT IN (1, 2) AND i NOT IN (2, NULL)
i = 1 OR i = NULL
i IN (1 + 1, -1, - 2, 6 / 2)
i IN (-1, -2147483648)
i IN (CAST('5' AS int), 1)
-i IN (1, -1)
i % 3 IN (0, 1)
d IN (1, 1.5, NULL)
f IN (0.1, 1.5)
(i) IN (1)
(i IN (1, 2)) IS NULL
(i IN (1, NULL)) IS NOT TRUE
i IN (1, 2) = b
NOT i IN (1) OR b
dt IN (DATE '2024-03-10', DATE '1970-01-01')
ts IN (TIMESTAMP '1970-01-01 00:00:00Z', NULL)
p IN (1.50, 2)
s IN ('', 'a', 'it''s', '\\')
l IN (9223372036854775807, -9223372036854775808)

--- tuples
(i, j) IN ((1, 2))
(i, j) IN ((1, 2), (5, NULL))
(i, j) NOT IN ((1, 2))
(i, j) NOT IN ((1, NULL))
(i, s) IN ((1, 'a'), (5, 'b'))
NOT (i, j) IN ((1, 2), (2, 3))
(i, j) IN ((NULL, NULL))
(ti, i) IN ((1, 2L))
(i, dt) IN ((1, DATE '1970-01-01'), (5, DATE '2024-03-10'))
(b, i) NOT IN ((TRUE, 1), (FALSE, 5))
(i, j) IN ((j, i))
[open] (i, j) = (1, 2)
(i, j) <=> (1, NULL)
[open] (i, j) < (5, 5)
(i, d) IN ((1, 1.5), (0, CAST('NaN' AS double)))
(p, i) IN ((1.5, 1))
(s, dt) IN (('a', '2024-03-10'))
((i, j)) IN ((1, 2))
(i, j) IN ((1, 2)) IS NULL
(d, d) IN ((0.0D, -0.0D))
(i, l) IN ((1, 1), (5L, 5L))
struct(i, j) = struct(1, 2)
named_struct('x', i) IN (named_struct('x', 1))
(i, i) IN ((5, 5), (1, NULL)) OR b
(i, j) NOT IN ((1, CAST(NULL AS int)))
(i, j) IN ((1, 2), (5, CAST(NULL AS int)))
(i, j) NOT IN ((CAST(NULL AS int), CAST(NULL AS int)), (1, 1))
(p, i) IN ((CAST(1.5 AS decimal(5,2)), 1))
(i, d) IN ((1, 1.5D), (0, CAST('NaN' AS double)))
(i, l) NOT IN ((1, 1L), (5, 5L))
(ti, si) IN ((1Y, 2S), (-1Y, 3S))
(s, dt) IN (('a', DATE '2024-03-10'), (CAST(NULL AS string), DATE '1970-01-01'))
(ts, b) NOT IN ((TIMESTAMP '1970-01-01 00:00:00Z', CAST(NULL AS boolean)))
NOT ((i, j) IN ((1, 2), (2, 2)) AND b)
((i, s) IN ((1, 'a'))) IS NULL
(st.a, m['k']) IN ((5, 'a'), (1, CAST(NULL AS string)))

--- LIKE
s LIKE 'a%%' ESCAPE '%'
s LIKE 'a__c' ESCAPE '_'
s LIKE 'a''%' ESCAPE ''''
s LIKE 'a\\nb'
s LIKE '%' ESCAPE '\\'
s LIKE '!%' ESCAPE '!'
s LIKE 'it\'s'
s LIKE '\\%'
s LIKE '\%'
s LIKE '\\_%'
like(s, 'a!%c', '!')
s || t LIKE 'a%'
s LIKE 'a' || t
s LIKE upper('a%')
s NOT LIKE t
NOT s LIKE t
s LIKE '%\\\\%'
s LIKE 'a%' = b
s LIKE ('a%')
s NOT LIKE ('a_c') ESCAPE '!'
s LIKE 'a%'
s LIKE '%c'
s LIKE '%b%'
s LIKE 'a_c'
s LIKE '_'
s LIKE '__'
s LIKE '%'
s LIKE ''
s LIKE 'abc'
s LIKE 'a\\%c'
s LIKE 'a\%c'
s LIKE 'a\_c'
s LIKE r'a\%c'
s LIKE 'a!%c' ESCAPE '!'
s LIKE 'a!_c' ESCAPE '!'
s LIKE 'aa%' ESCAPE 'a'
s NOT LIKE 'a%'
NOT s LIKE 'a%'
s NOT LIKE 'a!%%' ESCAPE '!'
s LIKE 'x%y'
s LIKE 'x_y'
s LIKE 'x\ny'
s LIKE '日_'
s LIKE '_本'
s LIKE 'a_c' AND s NOT LIKE 'a🎉c'
s LIKE '🎉'
s LIKE '_🎉_'
s LIKE '\\\\'
s LIKE 'a\\\\b'
s LIKE r'a\\b'
s LIKE 'it''s'
s LIKE 'it\'s'
s LIKE NULL
s NOT LIKE NULL
s LIKE t
s LIKE concat(t, '%')
i LIKE '5'
i LIKE '%5%'
dt LIKE '2024%'
b LIKE 't%'
s LIKE 'a%' OR s LIKE 'b%' OR s LIKE '%1%'
m['k'] LIKE 'a%'
m.k LIKE '%'
st.b LIKE '_%_'
upper(s) LIKE 'A%'
s LIKE 'a.c'
s LIKE '.*'
s LIKE '[a]'
s LIKE '%%'
s LIKE '%_%'
s LIKE '_%_'
s LIKE 'A%'
s LIKE '%%c'
s ILIKE 'A%'
s NOT ILIKE 'A%'
s RLIKE '^a'
s LIKE ANY ('a%', 'b%')
s LIKE ALL ('a%', '%c')
s LIKE 'a/%c' ESCAPE '/'
s LIKE '%\'%'
s LIKE '"'
s LIKE "a%"
s LIKE '\t%'
'abc' LIKE 'a%'
NULL LIKE 'a'
s LIKE 'é'
s LIKE '%é%' 
s LIKE '%a%b%c%'
like(s, 'a%')
s LIKE 'a' || '%'
s || 'x' LIKE 'a%x'
NOT s LIKE '%a%' AND b
s LIKE '%a' ESCAPE 'a'
s LIKE 'a\b'
s LIKE 'abc\\'
bin LIKE 'a%'
ts LIKE '1970%'
d LIKE '1%'
s LIKE '__%'
startswith(s, 'a')
endswith(s, '')
contains(s, 'b')
startswith(s, NULL)

--- null tests
i IS NULL
i IS NOT NULL
NOT i IS NULL
isnull(i)
isnotnull(i)
NOT isnull(s)
st IS NULL
st IS NOT NULL
st.in IS NULL
st.in.x IS NULL
m IS NULL
m IS NOT NULL
m['k'] IS NULL
m['k'] IS NOT NULL
b IS TRUE
b IS FALSE
b IS NOT TRUE
b IS NOT FALSE
b IS UNKNOWN
b IS NOT UNKNOWN
(i > 1) IS TRUE
(i > 1) IS NOT TRUE
(i > 1 AND b) IS NULL
(i > 1 OR b) IS NOT NULL
NOT (i > 1) IS NULL
i + j IS NULL
(b AND NULL) IS NULL
(b OR NULL) IS NULL
b AND NULL
b OR NULL
NOT (b AND NULL)
NOT (b OR NULL)
(i = NULL) IS NULL
i IS DISTINCT FROM 5
i IS NOT DISTINCT FROM 5
i IS DISTINCT FROM NULL
b = NULL OR TRUE
NULL AND FALSE
coalesce(i, j) IS NULL
i IS NULL = b
(NULL) IS NULL
NULL IS NOT NULL
i IS NULL AND i = 5
b IS NULL IS NULL
b <=> TRUE
b <=> c
NOT (b <=> c)
(b <=> NULL) OR c

--- logic
!b IS NULL
! b <=> c
!b = c
! i IN (1, NULL)
! s LIKE 'a%'
! i BETWEEN 1 AND 5
!b AND c
! i = 5 OR c
!!b
! NOT b
NOT !b IS NULL
!(b) IS NULL
!isnull(i) = b
! i > 1 = c
b AND ! c IS NULL OR i = 1
TRUE = b
i IS NOT NULL AND NOT i IN (1, 2) AND NOT j = 2 OR NOT l = 3
b AND c OR i = 5
b OR c AND i = 5
NOT b AND c
NOT b OR c
NOT (b OR c)
NOT (b AND c)
NOT NOT b
NOT NOT NOT b
NOT b = c
NOT (NOT b AND (c OR NOT i > 1))
b AND (c OR (i > 1 AND (j < 5 OR NOT s = 'a')))
NOT (b AND NOT (c OR NOT (i > 1 AND j < 5)))
(b OR i = 1) AND (b OR i = 2)
(b AND i = 1) OR (b AND i = 2)
b AND TRUE
b OR FALSE
b AND FALSE
b OR TRUE
NOT (b = FALSE)
b = FALSE
b <> FALSE
NOT (b <=> FALSE)
NOT b <=> c
(b) AND ((c))
b = c = TRUE
b AND b AND b
(i > 1 OR i <= 1) AND b
NOT (i > 1 AND i IS NULL)
i <> 0 AND 10 / i > 1
i = 0 OR 10 / i > 1
10 / i > 1 OR i = 0
NOT (i <> 0 AND 10 / i > 1)
i IS NULL OR i + 1 > i
FALSE AND 1 / 0 > 1
TRUE OR 1 / 0 > 1
b AND 1 / 0 > 1
NOT (i < 1 AND NOT j >= 2 OR NOT (l > 3 OR NOT d <= 4))
(i = 1) <> (j = 1)
(i = 1) <=> (j = 1)
(b OR c) = (c OR b)
b XOR c
b < (i = 1)
b /* comment */ AND c
(((((((((b)))))))))
b AND c AND i = 1 AND j = 2 AND s = 'a' OR d > 1
i=1or j=2
i>1and b
not(b)and(c)
(b)or(c)
NOT i > 1 = b

--- choices
CASE WHEN b THEN c ELSE i > 1 END
CASE WHEN i > 1 THEN 'a' WHEN i < 0 THEN 'b' END = 'a'
CASE i WHEN 1 THEN 'x' WHEN 5 THEN 'y' ELSE 'z' END <> 'z'
CASE i WHEN NULL THEN TRUE ELSE FALSE END
CASE b WHEN TRUE THEN 1 END IS NULL
CASE WHEN i = 0 THEN 0 ELSE 10 / i END > 1
if(i = 0, NULL, 10 / i) > 1
if(b, i, l) > 1
if(b, 1, 2.5) > 2
if(NULL, TRUE, FALSE)
coalesce(i, 0) > 1
coalesce(b, FALSE)
NOT coalesce(b, TRUE)
coalesce(i, l, 5) = 5
coalesce(NULL, NULL, i) = 1
coalesce(NULL, NULL)
nullif(i, 5) IS NULL
nullif(i, j) > 1
nullif(s, '') IS NOT NULL
nullif(i, 5.0) = 1
nullif(1, i) = 1
nvl(i, 5) = 5
ifnull(s, 'a') = 'a'
nvl2(i, j, l) > 1
coalesce(s, 'a') LIKE 'a%'
coalesce(dt, DATE '1970-01-01') = '1970-01-01'
coalesce(i, '5') = 5
if(i > 1, 'a', s) IN ('a', 'b')
CASE WHEN b THEN i WHEN c THEN l ELSE d END < 5
CASE WHEN b THEN 1Y ELSE 1000 END = 1
greatest(i, j) > 1
least(i, j, 5) < 2
greatest(i, l, d) > 1
nanvl(d, 1.0D) > 1
coalesce(1 / i, 0) > 0
CASE WHEN i IS NULL THEN TRUE WHEN 10 / i > 1 THEN FALSE END
CASE WHEN b THEN NULL ELSE i END = 1
if(b, NULL, c)
if(b, i, NULL) IS NULL
CASE s WHEN 'a' THEN 1 WHEN 'b' THEN 2 END IN (1, 2)
CASE WHEN NULL THEN b ELSE c END
[open] decode(i, 1, 'a', 5, 'b', 'c') = 'a'
iff(b, c, b)

--- arithmetic
3 * p * l = 0.0000000001
i = -(-2147483648)
i = - -2147483648
i < -(-(-5))
l = -(-9223372036854775808)
ti = -(-128Y)
r * r > 1
r * 1.5 = 2.25
q * r < 5
r - 0.00000000005 = 1
r * 1.00000000001 > 1
q - r = 0
p * 1.005 = 1.5075
f + 0.1F = 0.2F
f * f = 2.25
f + i = 2
f + l > 5
l + d = 2
round(d, 1) = 1.5
round(i, -1) = 10
floor(p, 1) = 1.5
ceil(d, 1) = 1.5
-i::bigint = -5
-1::string = '-1'
'5'::int = i
- i + 5 = 0
-i & 3 = 3
i ^ j ^ 1 = 1
~i & 3 = 2
-i IS NULL
NOT -i = 5
i + 1 IN (2, 6)
i % 2 IS NULL
i - 1 - 1 IN (3)
2 * (i + 1) = 12
i * -1 = -5
i+1=6
i-1=4
i -1 = 4
i*-1 = -5
1-i<0
p-q>r
i + 1 > 2
i + j * 2 > 5
(i + j) * 2 > 5
i - j - 1 = 0
i - (j - 1) = 0
i * 2 + j * 3 <> 7
-i = 5
- i < -1
-(-i) = 5
- -i = 5
+i = 5
i - -1 = 6
i--1 = 6
2 - -j * 3 > 1
-i * -j = 10
-2147483648 = i
i = -(2147483648)
l = - 9223372036854775808
i % 2 = 1
i % -2 = -1
-i % 2 = -1
10 % i = 0
i / 2 > 1
i / j > 1
i div 2 = 1
i DIV j = 1
10 - i - j - 1 > 0
100 / i / 2 > 5
100 / (i / 2) > 5
i * j / 2 * 3 > 5
i + 1 = j - 1
i + 2147483647 > 0
ti + 127Y > 0Y
ti + 1 > 0
si * 2 > 5
l * 2 > 0
l + 1 > 0
abs(i) = 5
abs(-5) = i
abs(i - j) <= 1
i + 1.5 > 2
i * 0.1 = 0.5
p + 1 = 2.5
p * 2 = 3
p * p > 2
p - q < 0
q + q > 1
p + 0.001 > 1.5
q * q > 1
r + 1 > 1
p / 2 = 0.75
p % 1 = 0.5
d + 0.1 = 0.2
d * 2 = 3
d / 0 > 1
f + f = 3
f * 0.1 > 0.1
d % 1 = 0.5
pmod(i, 3) = 2
mod(i, 3) = 2
round(d) = 2
round(p) = 2
round(p, 1) = 1.5
floor(d) = 1
ceil(d) = 2
floor(p) = 1
ceil(-d) = -1
floor(i) = 5
sign(i) = 1
negative(i) = -5
positive(i) = 5
i & 3 = 1
i | 1 = 5
i ^ 1 = 4
~i = -6
(i | 1) & 3 = 1
i | 1 & 3 = 5
(i ^ 1) & 3 = 0
i ^ (j & 3) = 1
(i & j) | 1 = 1
i & j + 1 = 0
(i | j) ^ 1 = 0
i << 1 = 10
i >> 1 = 2
s || t = 'ab'
s || 'b' || t = 'abc'
s || i = 'a5'
i + 1 || 'x' = '6x'
'a' || i + 1 = 'a6'
i = 1 + 2 * 3 - 4 / 2
i > 2 * -1
1 - 1 - 1 = -1
7 div 2 = 3
-7 % 3 = -1
-7 div 2 = -3
1 / 3 = 0.3333333333333333D
2 + 3 * 4 = 14
(2 + 3) * 4 = 20
-2 * 3 = -6
- 2 - - 3 = 1
5 % 3 * 2 = 4
i + NULL > 1
i * NULL IS NULL
-NULL IS NULL
NULL + NULL IS NULL
i + '1' = 6
'1' + i > 1
s + 1 > 1
i / '2' > 1
-s > 1
i * 1.0D = 5
l / 3 > 1
cast(i AS decimal(5,2)) * 2 > 3
1.5 * 2 = 3
1.5 + 1.25 = 2.75
0.1 + 0.2 = 0.3
0.1D + 0.2D = 0.3D
1e3 = 1000
i - 1 BETWEEN -1 AND +1
dt + 1 = DATE '2024-03-11'
1 + dt > DATE '1970-01-01'
dt - 1 < DATE '1970-01-01'
dt - 1 - 1 > '1970-01-01'
dt - DATE '1970-01-01' > INTERVAL '1' DAY
-p = -1.5
-d = 0.0
- ti < 0
-(i + j) = -(j + i)
(i + j) - (l - i) > 0
i - (j + l) > 0
i / (j * 2) > 0
i * (j div 2) >= 0
i % (j % 3) = 0
(i % j) % 3 = 0
-(i * 2) + 1 > 0
- (i) = 1
(-i) % 2 = -1
-(i % 2) = -1
(i - j) - 1 = i - (j - 1)

--- text literals
s = '\ud83c\udf89'
s = 'a\u0000'
s <> 'a' -- comment
s = '--'
s = 'a''''b'
s = "a""b"
s = 'a"b'
s = r'it''s'
s = r"it's"
'\\n' = r'\n'
s LIKE r'\\%'
s IN (r'a\b', R"\", 'it''s')
s = 'it''s'
s = 'it\'s'
s = "it's"
s = "a"
s = """"
s = '"'
s = '\\'
s = r'\'
s = r'a\b'
s = 'a\\b'
s = R'a\b'
s = r"a\b"
s = 'x\ny'
s = '\n'
s = '\u0061'
s = '\x61'
s = '\141'
s = '\é'
s = 'é'
s = '\u00e9'
s = '\U0001F389'
s = '🎉'
s = '日本'
s = 'a' 'b'
s = ''
s <> ''
s = '\%'
s = 'a\%c'
s = 'a\_c'
s = 'a%c'
s = 'a_c'
s = '\a'
s = '\''
s = ''''
s = 'it''s' OR s = 'a'
s = '\0'
s = '\Z'
s = '\t'
s = '\r'
s = '\b'
s >= 'é'
s < '🎉'
s > '￿'
s < 'A'
s = 'A'
s = 'a '
length(s) = 1
s = concat('it', '\'', 's')
s IN ('\\', 'it''s', '\n', '')
s = 'a' AND t = 'it''s' OR s = '-- no comment'
s = '/* a */'
s = 'a;b'
s = 'C:\temp'
s = '\\\\'
length('\\\\') = 2
s = r''
s = 'k' OR s = '`'
length('\123456') > 1
'\u12' = 'u12'
'\1' = '1'
'\45' = '45'
'\x1' = 'x1'
'\q' = 'q'
'\N' = 'N'
'\/' = '/'
r'\'' = 'x'
'\U00000061' = 'a'
'\8' = '8'
'\400' = '400'
'\377' = 'ÿ'

--- number literals
l = 5L
l = 5l
si = 5S
si = 5s
ti = 5Y
ti = -128Y
si = -32768S
l = -9223372036854775808L
i = 5Y
d = 1.5D
d = 1.5d
d = 15e-1
d = 15E-1
d = .15e1
d = 1.D
d = 5D
f = 1.5F
f = 1.5f
f = 5F
f = 0.1F
p = 1.5BD
p = 1.5bd
p = 5BD
p = 1.50BD
d = 1e3
d = 1e3D
p = 15e-1BD
p = .5
p = 1.
p = 01.5
i = 05
i = 1e0
d < 1e400D
d < 1.7976931348623157e308D
d > 5e-324
d > 1e-400D
f < 3.4028235e38F
i = 1.
p > .01
p = 0.010
q = 00001.5
d = 1.5E0
d = 1.5e+0
f = 1e0F
f = -1.5F
d = -1.5D
p = -1.5BD
p = -1.5
i = -5
i = - 5L
l = 9007199254740993L
r = 0.0000000001BD
r = 1e-10BD
p = 1.5000000000000000000000000000000000
i = 00000000000005
d = 0x1
i = 1_000
i = 5LL
1.0 = 1
1.10 = 1.1
1BD = 1.00BD
0.1F = 0.1D
0.1F = 0.1
1e2 = 100L
5Y + 5Y = 10
100Y + 100Y = 200
127Y = 127
1e38 = 1e38BD
d = 1e-1
f = 16777217
f = 16777217F
f = 16777216D
5S = 5Y
-5Y = -5L
- 5Y < 0
ti = 128Y
si = 32768S
l = 9223372036854775808L

--- times
dt > DATE 'epoch'
ts > TIMESTAMP 'epoch'
dt <= DATE 'today'
ts < TIMESTAMP 'now'
dt = DATE '2024-03-10 12:00:00'
dt = DATE '2024-03-10T'
ts > TIMESTAMP '2024-03-10 12'
ts > TIMESTAMP '2024'
ntz = TIMESTAMP_NTZ '2024-03-10 02:30:00Z'
ts >= TIMESTAMP '2024-03-10 02:30:00.1234567'
ts = TIMESTAMP '2024-03-10 02:30:00+00'
to_date(s, 'yyyy-MM-dd') = dt
to_timestamp(s, 'yyyy-MM-dd') = ts
extract(days FROM dt) = 10
extract(minutes FROM ts) = 30
extract(seconds FROM ts) = 0
extract(second FROM ntz) > 0.1
extract(hours FROM ts) = 1
extract(mins FROM ts) = 30
extract(years FROM dt) = 2024
extract(mon FROM dt) = 3
extract(qtr FROM dt) = 1
extract(d FROM dt) = 10
extract(y FROM dt) = 2024
extract(m FROM ts) = 30
extract(h FROM ts) = 1
extract(s FROM ts) = 1
extract(w FROM dt) = 10
extract(dayofweek_iso FROM dt) = 7
extract(year FROM s) = 2024
[open] extract(DAY FROM INTERVAL 5 DAYS) = 5
date_part('second', ts) = 0
datepart('year', dt) = 2024
second(ts) = 0
trunc(ts, 'month') = '2024-03-01'
date_trunc('week', dt) = '2024-03-04'
date_trunc('quarter', ts) = '2024-01-01'
date_trunc('bogus', ts) IS NULL
trunc(dt, 'bogus') IS NULL
current_date() - 1 < dt
date_sub(current_date(), 7) <= dt
unix_timestamp(ts) = 0
CAST(ts AS string) > '2024'
CAST(ntz AS string) LIKE '2024-03-10 02%'
dt::string = '2024-03-10'
CAST(dt AS timestamp_ntz) = ntz
hour(dt) = 0
hour(ntz) = 2
months_between(ts, dt) > 1
timestampadd(HOUR, 1, ts) > ts
dateadd(DAY, 1, dt) = DATE '2024-03-11'
datediff(DAY, dt, ts) = 0
date_add(dt, ti) > dt
dt - 1 IN ('2024-03-09')
dt = DATE '2024-03-11' - 1
DATE '2024-03-10' + 1 > dt
ts > DATE '2024-03-10' - INTERVAL 1 DAY
ts IN (DATE '1970-01-01', TIMESTAMP '2024-11-03 01:30:00')
dt = DATE '2024-03-10'
dt = date'2024-03-10'
dt = DATE '2024-3-1'
dt >= DATE '2024'
dt = DATE "2024-03-10"
dt < DATE '0001-01-01'
dt = DATE '9999-12-31'
[open] dt < DATE '-0001-01-01'
dt < DATE '+10000-01-01'
dt = DATE('2024-03-10')
dt = to_date('2024-03-10')
ts = TIMESTAMP '1970-01-01 00:00:00'
ts = TIMESTAMP '1970-01-01 00:00:00Z'
ts = TIMESTAMP '1970-01-01'
ts >= TIMESTAMP '2024-03-10 02:30:00'
ts = TIMESTAMP '2024-11-03 01:30:00'
ts = TIMESTAMP '2024-11-03 01:30:00 America/New_York'
ts >= TIMESTAMP '2024-11-03 01:30:00-05:00'
ts < TIMESTAMP '2024-03-10 02:30:00 Asia/Kolkata'
ts = TIMESTAMP '1970-01-01 00:00:00.000001Z'
ts = TIMESTAMP '1969-12-31 23:59:59.999999Z'
ts < TIMESTAMP '9999-12-31 23:59:59.999999'
ntz = TIMESTAMP_NTZ '1970-01-01 00:00:00.5'
ntz = TIMESTAMP_NTZ '2024-03-10 00:00:00'
ts = TIMESTAMP_LTZ '1970-01-01 00:00:00'
ts = TIMESTAMP '2024-03-10T07:00:00Z'
ts = timestamp'1970-01-01'
year(ts) = 2024
year(dt) = 2024 AND month(dt) = 3
YEAR(TS) IN (1969, 1970)
hour(ts) = 2
day(ntz) = 3
minute(ts) BETWEEN 0 AND 30
CAST(ts AS date) = '2024-03-10'
to_date(ts) = DATE '1969-12-31'
date(ts) < '1970-01-01'
date_trunc('day', ts) = TIMESTAMP '2024-03-10'
date_trunc('month', ts) = '2024-11-01'
trunc(dt, 'month') = '2024-03-01'
date_trunc('hour', ntz) = TIMESTAMP_NTZ '2024-03-10 02:00:00'
date_add(dt, 1) = '2024-03-11'
date_sub(ts, 1) < '1970-01-01'
datediff(dt, '1970-01-01') > 1
datediff(ts, dt) = 0
add_months(dt, 1) = '2024-04-10'
last_day(dt) = '2024-03-31'
EXTRACT(YEAR FROM ts) = 2024
extract(month FROM dt) = 3
extract(DAY FROM ts) = 3
extract(HOUR FROM ts) = 1
date_part('year', ts) = 2024
extract(quarter FROM dt) = 1
extract(second FROM ts) = 0
extract(dow FROM dt) = 1
extract(doy FROM dt) = 70
extract(week FROM dt) = 10
extract(dayofweek FROM dt) = 1
extract(yearofweek FROM dt) = 2024
unix_seconds(ts) = 0
unix_micros(ts) = 1
unix_date(dt) = 19782
CAST(ts AS bigint) = 0
CAST(ts AS string) = '1970-01-01 00:00:00'
CAST(dt AS string) LIKE '2024-%'
CAST(dt AS timestamp) = ts
CAST(ntz AS timestamp) = ts
CAST(ts AS timestamp_ntz) = ntz
CAST('2024-03-10 02:30:00' AS timestamp) = ts
CAST(s AS date) = DATE '2024-03-10'
TRY_CAST(s AS date) = DATE '2024-03-10'
TRY_CAST(s AS timestamp) > TIMESTAMP '2024-03-10 02:00:00'
make_date(2024, 3, 10) = dt
dayofweek(dt) = 1
weekday(dt) = 6
quarter(dt) = 4
weekofyear(dt) = 10
timestamp_seconds(l) < ts
ts > ntz AND dt <= ts
to_timestamp('2024-03-10 02:30:00') = ts
to_date(s) > '2000-01-01'
date_format(dt, 'yyyy') = '2024'
current_date() > dt
ts < current_timestamp()
ts < now()
dt = current_date
dt < DATE '2024-13-01'
ts = TIMESTAMP '2024-01-01 25:00:00'
dt = '2024-13-01'

--- intervals
[open] dt - INTERVAL 1 DAY + 1 = dt
dt + INTERVAL 1 DAY - 1 = dt
dt + INTERVAL 1 DAY + i > dt
ts + INTERVAL 1 DAY + INTERVAL 1 HOUR > '1970-01-01'
ts - INTERVAL 1 DAY - INTERVAL 1 HOUR > '1970-01-01'
ts + INTERVAL 1 DAY - INTERVAL 1 HOUR > '1970-01-01'
ts + INTERVAL 1 DAY < ntz
ts + INTERVAL 1 DAY > ts - INTERVAL 1 DAY AND b
dt + INTERVAL '1' DAY IN (DATE '2024-03-11', DATE '1970-01-02')
dt + INTERVAL 1 DAY = dt + 1
dt + INTERVAL '10' DAYS BETWEEN dt AND dt + 10
dt + INTERVAL '1 day 2 hours' > dt
dt + INTERVAL '1 month' > dt
dt + INTERVAL 0 DAY = dt
ts + INTERVAL 36 HOURS > TIMESTAMP '2024-03-10 12:00:00'
ts + INTERVAL 1 MONTH > TIMESTAMP '2024-03-10 02:30:00'
ts - INTERVAL 1000 MILLISECONDS < '1970-01-01'
CAST(ts - INTERVAL 5 HOURS AS date) = '2024-03-09'
st.in.t > DATE '2024-03-17' - INTERVAL 7 DAYS
dt + INTERVAL 1 DAY = DATE '2024-03-11'
dt - INTERVAL 1 DAY < DATE '1970-01-01'
dt + INTERVAL '1' DAY > '1970-01-01'
dt + INTERVAL 1 MONTH = DATE '2024-04-10'
dt - INTERVAL 1 YEAR = DATE '2023-03-10'
ts + INTERVAL 1 DAY > TIMESTAMP '2024-03-10 12:00:00'
ts - INTERVAL 1 HOUR < TIMESTAMP '1970-01-01 00:00:00Z'
ts > TIMESTAMP '2024-03-11' - INTERVAL 1 DAY
ntz + INTERVAL 30 MINUTES = TIMESTAMP_NTZ '2024-03-10 03:00:00'
INTERVAL 1 DAY + dt = DATE '2024-03-11'
dt + INTERVAL 12 HOURS = TIMESTAMP '2024-03-10 12:00:00'
dt + INTERVAL '1 day' = DATE '2024-03-11'
ts + INTERVAL '1' HOUR - INTERVAL '60' MINUTE = ts
ts - INTERVAL '1 02:00:00' DAY TO SECOND < TIMESTAMP '1970-01-01'
dt >= DATE '2024-03-17' - INTERVAL 7 DAYS
dt + INTERVAL '1-2' YEAR TO MONTH > DATE '2024-01-01'
ts + INTERVAL 1 DAY 2 HOURS > TIMESTAMP '1970-01-01'
dt - INTERVAL -1 DAY = DATE '2024-03-11'
dt + INTERVAL '-1' MONTH < '1970-01-01'
ts + INTERVAL 1 WEEK > '2024-01-01'
ntz - INTERVAL 1 SECOND < TIMESTAMP_NTZ '1970-01-01 00:00:00'
dt + -INTERVAL 1 DAY < '1970-01-01'
dt - - INTERVAL 1 DAY < '1970-01-01'
ts - ts = INTERVAL 0 SECOND
ts - INTERVAL 1.5 SECONDS < '1970-01-01'
dt + INTERVAL 1 DAY + INTERVAL 1 MONTH = DATE '2024-04-11'
dt + (INTERVAL 1 DAY + INTERVAL 1 DAY) = DATE '2024-03-12'
INTERVAL 1 DAY = INTERVAL 24 HOURS
dt - INTERVAL 1 DAY - INTERVAL 2 DAYS BETWEEN '1970-01-01' AND DATE '2024-03-10' - INTERVAL 1 DAY
dt + INTERVAL 1 DAYS * 2 > '1970-01-01'
(dt - INTERVAL 1 DAY) + 1 = dt
ts < '2024-03-10' + INTERVAL 1 DAY
s + INTERVAL 1 DAY > DATE '2024-01-01'
NULL + INTERVAL 1 DAY IS NULL
dt + NULL IS NULL
dt - 1 + INTERVAL 1 DAY = dt
st.in.t - INTERVAL 90 DAYS < TIMESTAMP '2024-01-01'
dt + INTERVAL i DAY > '1970-01-01'
dt - (dt - INTERVAL 1 DAY) = INTERVAL 1 DAY
ts - (INTERVAL 1 DAY) > '1970-01-01'
dt - INTERVAL 1 quarter > '1970-01-01'

--- nested and maps
m['k'] IN ('a', NULL)
m['k'] NOT IN ('a', 'b')
m['k'] BETWEEN 'a' AND 'b'
coalesce(mi['k'], 0) + 1 > 1
mi['k'] IS NULL AND map_contains_key(mi, 'k')
map_contains_key(m, s)
map_contains_key(m, 1)
element_at(m, s) = 'a'
m[concat('', 'k')] = 'a'
m["k"] = 'a'
m[r'k'] = 'a'
st.`a` = 5 AND `st`.`in`.`x` = 5
st.`in`.t IS NULL
named_struct('a', st.a).a = 5
st.a = 5
st.b = 'a'
st.in.x = 5
st.in.`odd name` > 1
st['a'] = 5
st['in']['x'] > 1
st.in['x'] > 1
`st`.`a` IS NULL
st.a = i AND st.in.x = l
m['k'] = 'a'
m.k = 'a'
m.`a.b` = 'a'
m['a.b'] = 'a'
m['missing'] IS NULL
m[''] = 'a'
m['é'] = 'a'
m['it''s'] = 'a'
m['it\'s'] IN ('a', 'b')
element_at(m, 'k') = 'a'
try_element_at(m, 'k') = 'a'
element_at(m, 'missing') IS NULL
map_contains_key(m, 'k')
NOT map_contains_key(m, 'k')
map_contains_key(m, 'k') AND m['k'] IS NULL
map_contains_key(m, 'k') IS NULL
mi['k'] = 5
mi.k > 1
mi['k'] + mi['a.b'] > 3
mi['k'] IN (1, 5, NULL)
mi['k'] BETWEEN 1 AND 5
m['k'] LIKE 'a%'
m[s] = 'a'
m[m['k']] IS NULL
size(m) = 0
size(m) > 1 AND m['k'] IS NOT NULL
cardinality(mi) = 2
coalesce(m['k'], 'none') = 'none'
m['k'] <=> m['a.b']
m['k'] = st.b
upper(m['k']) = 'A'
m['k'] <> 'a' OR m['k'] IS NULL
m['K'] IS NULL
M['k'] = 'a'
m.K IS NULL
element_at(mi, 'k') = element_at(mi, 'a.b')
m['k'] = mi['k']
m[1] IS NULL
mi['k'] = 2.5
map_contains_key(m, NULL)
m[NULL] IS NULL
size(m['k']) = 1
map_keys(m)[0] = 'k'
m['k']['x'] = 'a'
st.in.t >= '2024-03-10'
year(st.in.t) = 2024
st.in.t BETWEEN TIMESTAMP '1970-01-01' AND '2024-11-03 01:30:00'
st.missing = 1
[open] st = st
m = m
[open] st.in = st.in

--- functions
s LIKE ANY ('a%', NULL)
s LIKE ANY ('a%', t)
s NOT LIKE ANY ('a%', 'b%')
NOT s LIKE ANY ('a%', 'b%')
s NOT LIKE ALL ('a%', 'b%')
s LIKE SOME ('a%')
s ILIKE ALL ('A%', '%')
s ILIKE 'AXB%' ESCAPE 'X'
s NOT ILIKE 'a/%c' ESCAPE '/'
ilike(s, 'A%')
string(i) = '5'
string(dt) = '1970-01-01'
int(s) = 1
bigint(s) > 0
double(s) > 0
decimal(s) > 0
boolean(i)
date(s) = '1970-01-01'
timestamp(dt) = ts
binary(s) = X'61'
s + 1 > 1
i - s > 1
s / 2 > 0
'7' % i = 1
p * s > 1
-s < 0
abs(s) > 1
p / 3 > 1
p / i > 1
p / +3 > 0.333333333
p / -(3) < 0
p / int(3) > 1
p / q > 1
1 / q > 1
q / r < 1
r / 7 > 1
p / 2L > 1
p % 3 = 1
q % p > 1
pmod(p, 3) > 1
pmod(r, q) > 1
try_divide(p, q) IS NULL
try_divide(i, j) IS NULL
try_add(i, 2147483647) IS NULL
try_subtract(i, j) > 0
try_multiply(l, l) IS NULL
i & 3 = 1
(i | 8) = 9
i ^ j = 0
~i = -6
i << 2 = 20
l >> 1 > 2
(i & 1) << 2 = 4
nullifzero(i) IS NULL
zeroifnull(p) = 0
nullif(s, 'a') IS NULL
nullif(i, 5L) IS NULL
nvl2(s, i, l) = 1
equal_null(s, t)
typeof(i) = 'int'
typeof(s) = 'string' AND b
hex(l) = 'FFFFFFFFFFFFFFFF'
unhex(s) IS NULL
md5(s) < '8'
sha2(s, 256) < '8'
crc32(s) > 100
bit_count(i) > 1
split_part(s, 'b', -1) = 'c'
lpad(i, 5, '0') = '00005'
rpad(s, 2, 'xy') = 'ax'
trim(BOTH 'ab' FROM s) = 'c'
trim(TRAILING 'c' FROM s) = 'ab'
rtrim(t, s) = ''
extract(week FROM dt) = 1
date_part('doy', ts) = 1
datepart('QTR', dt) = 1
extract(SECOND FROM ts) = 1.5
make_timestamp(2026, 1, i, 0, 0, p) > ts
next_day(dt, 'mon') > dt
timestamp_seconds(p) < ts
timestamp_seconds(d) < ts
bround(p, 1) = 1.2
ceil(p, 1) > floor(p, 1)
sqrt(d) > 1
length(i) = 1
upper(dt) > '1970'
s || i = 'a5'
concat(i, '-', dt) > '5'
timestampadd(HOUR, 1, ts) > ts
pmod(d, double('Infinity')) >= 0
substring(s, -2) = 'bc'
substring(s, 0, 1) = 'a'
substring(s, 2, -1) = ''
left(s, -1) = ''
btrim(s) = '1'
trim('a' FROM s) = 'b'
ltrim('a', s) = 'bc'
locate('b', s, 2) = 2
position('b', s, 3) = 0
concat() = ''
concat(s) = 'a'
char(97) = s
chr(97) = s
decode(bin, 'utf-8') = 'a'
struct(i).col1 = 5
named_struct('a', i).a = 5
[open] array(i, j)[0] = 5
map('k', i)['k'] = 5
binary(s) = bin
float('1.5') = f
timestamp(dt) = ts
date(ts) = dt
double(s) = 1
tinyint(i) = 5
s::date = DATE '2024-03-10'
CAST(s AS decimal(5,2)) = 1.5
TRY_CAST(s AS decimal(5,2)) = 1.5
TRY_CAST(i AS tinyint) = 5
TRY_CAST(l AS int) IS NULL
CAST(d AS decimal(5,2)) = p
TRY_CAST(d AS decimal(5,2)) = p
CAST(f AS string) = '1.5'
CAST(p AS string) = '1.50'
CAST(b AS string) = 'true'
CAST(i AS varchar(5)) = '5'
CAST(s AS char(3)) = 'a  '
CAST(s AS binary) = bin
CAST(i AS binary) = bin
convert(s, 'x') = 'a'
normalize(s) = 'a'
ifnull(NULL, i) = 5
isnull(i) = isnull(j)
(i IS NULL) <> (j IS NULL)
coalesce(b, c, FALSE) AND NOT isnan(d)
equal_null(i, j)
i IN (abs(-5), length('a'))
length(s) IN (1, 3) AND left(s, 1) = 'a'
lower('ABC') = s
repeat(s, 2) = 'aa'
[open] initcap(s) = 'A'
regexp_like(s, '^a')
s REGEXP '^a'
nvl2(b, i, j) = 5
zeroifnull(i) = 0
nullifzero(i) IS NULL
if(i IS NULL, 0, i) = 0
foo(i) = 1
upper(lower(s)) = 'A'
length(concat(s, t)) > 2
substring(s, 1, 1) = 'a'
substr(upper(s), 2) = 'BC'
left(s, 1) = right(s, 1)
trim(concat(' ', s, ' ')) = s
reverse(s) = 'cba'
replace(s, 'a', 'b') = 'b'
instr(s, 'b') = 2
locate('b', s) > 0
position('b' IN s) = 2
position('b', s) = 2
substring(s FROM 2 FOR 1) = 'b'
trim(BOTH 'a' FROM s) = 'bc'
trim(LEADING FROM s) = 'a'
trim(TRAILING ' ' FROM s) = ' 1'
ltrim(s) = '1 '
rtrim(s) = ' 1'
overlay(s PLACING 'x' FROM 1) = 'xb'
CAST(i AS string) = '5'
CAST(s AS int) = 1
TRY_CAST(s AS int) = 1
TRY_CAST(s AS double) > 1
CAST(TRY_CAST(s AS int) AS string) = s
i::string = '5'
CAST(d AS int) = 1
CAST(p AS int) = 1
CAST(i AS decimal(5,2)) = p
CAST(CAST(i AS smallint) AS int) = i
int(s) = 1
string(i) = '5'
bigint(i) = l
double(p) = d
boolean('true') = b
decimal(i) = 5
abs(CAST(i AS bigint)) = abs(j)
CAST(b AS int) = 1
CAST(i AS boolean)
CAST(s AS boolean)
TRY_CAST(s AS boolean)
coalesce(nullif(upper(trim(s)), ''), 'NONE') = 'NONE'
year(coalesce(dt, CAST(ts AS date))) > 2000
if(length(s) > 1, substring(s, 1, 1), s) = 'a'
round(abs(d) * 10) / 10 = 1.5
greatest(length(s), length(t)) > 2
concat(s, NULL) IS NULL
s || NULL IS NULL
concat_ws('-', s, t) = 'a-b'
hash(i) > 0
md5(s) = 'x'
ceil(d) = floor(d)
CEILING(d) = 2
char_length(s) = 1
CAST(bin AS string) = 'a'
length(bin) = 1
CAST(i AS timestamp) = ts
CAST(ts AS double) = 0.5
CAST(dt AS int) = 1
CAST(NULL AS int) IS NULL
CAST(NULL AS int) = i
CAST('NaN' AS float) = f
CAST(' 5 ' AS int) = i
CAST(1.5 AS int) = i
CAST('x' AS int) = i
TRY_CAST('x' AS int) IS NULL
try_divide(1, i) > 0
try_add(i, 1) > 1
rand() > 2
monotonically_increasing_id() >= 0
array_contains(array(1, 5), i)
i IN (SELECT 1)
exists(array(i), x -> x > 1)
ln(d) > 0
sqrt(d) = 1
power(i, 2) = 25
i <> length(s)
startswith(lower(m['k']), left(s, 1))
ascii(s) = 97
lpad(s, 3, 'x') = 'xxa'
split(s, 'b')[0] = 'a'

--- refused
i = TRUE
b = 1
dt = 1
dt > 1.5
ts = 5
bin = 1
i = DATE '1970-01-01'
i = dt
b > i
i AND b
i
s
NOT i
NOT s
b AND s
i IN (TRUE)
i IN (1, TRUE)
dt IN (1, 2)
st = 1
m = 1
m = 'a'
st.a = TRUE
i BETWEEN TRUE AND FALSE
dt BETWEEN 1 AND 2
b LIKE 1
i LIKE 5
i['a'] = 1
s['a'] = 1
b + 1 > 1
i + TRUE > 1
dt + 1.5 > dt
if(i, b, c)
CASE WHEN i THEN b END
coalesce(i, TRUE) = 1
(i, j) IN ((1, 2, 3))
(i, j) IN (1, 2)
(i, j) IN ((TRUE, 1))
m[DATE '1970-01-01'] = 'a'
-b = 1
-dt > dt
i = X'61'
bin = dt
bin = TRUE
ts + 1 > ts
i = 'abc'
dt = 'abc'
ts > 'abc'
b = 'maybe'
d = 'abc'
p = 'x'
i IN (1, 'x')
dt IN ('2024-03-10', 'x')
i = ''
i = '1.5'
i = '99999999999999999999'
ti = '300'
if(b, i = 'abc', c)
i = 'abc' OR b
abs(s) = 1
abs(b) = 1
year(i) = 1
upper(i) = '5'
length(i) = 1
date_add(dt, 1.5) > dt
CAST(dt AS int) = 1
CAST(b AS date) = dt
CAST(i AS date) = dt
i IS TRUE
s IS TRUE
i IS NOT FALSE
b IS 5
