"""Files of CSV, JSON and text with what is odd about them, in groups that are read with the same options.

The second of a pair is what `arrow()` says instead of rows; None where it has Spark's.
"""

# ruff: noqa: E501 (files read better as they are)
from __future__ import annotations

import bz2
import gzip
import zlib
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

WAYS, ENDS, UTF8 = "can be read in several ways", "end in different ways", "is not UTF-8"
DAMAGED, UNKNOWN, ALONE, INNER, RAW = (
    "damaged",
    "is not known without it",
    "JSON to Spark alone",
    "stands in an array",
    "a string should",
)
Files = list[tuple[str | bytes, str | None]]


@dataclass(frozen=True)
class Group:
    """Files that are read in one way."""

    name: str
    format: str
    schema: str
    files: Files
    options: dict[str, Any] = field(default_factory=dict)
    suffix: str = ""
    zone: str = "UTC"


def same(*texts: str | bytes) -> Files:
    return [(text, None) for text in texts]


def lines(text: str) -> Files:
    """Each line as a file, and between two others."""
    first, last = '{"a":"p","b":1}\n', '\n{"a":"q","c":2}'
    return same(*(piece for line in text.strip().split("\n") for piece in (line, first + line + last)))


ABC = "a string, b string, c int"
_GZIP = gzip.compress(b"x,y,1\n")
CSV = [
    Group("plain", "csv", ABC, [
        *same("x,y,1\n", "x,y,1", "a,\"b,c\",1\n", ",,\n", "\n\n", "x\nx,y\nx,y,1,z\n,\n", "x,y,1\n\n   \n\t\nz,w,2\n"),
        *same(",,\n , , \n", " x , y , 1 \n", "\"\",\"\",1\n", "\"\"\nx,y,1\n", "ä,日本😀,1\n\u2028x,\x85y,1\n"),
        *same("a\"b,y,1\n", "a\"b\",y,1\n", " \"a\",y,1\n", "a\\\"b,y\\,1\n", "a\\,b,y,1\n"),
        *same("\"a\\\"b\",y,1\n", "\"a\\\\b\",y,1\n", "\"a\\\\\",y,1\n", "\"a\\nb\",y,1\n", "\"a\\\",\\\"b\",y,1\n\"c\n"[:-3]),
        *same(b"\xef\xbb\xbfx,y,1\n", b"\xef\xbb\xbf\"x\",y,1\n", "x,y,1\r\nz,w,2\r\n", "x,y,1\rz,w,2\r"),
        *same("x,y,1\r\nz,w,2\nq,r,3\rm,n,4", b"a\x00b,y,1\n\x00x,y,1\n", "a\x0bb,\x0cy,1\n\x1c,\x1d,2\n"),
        ("\"a\"\"b\",y,1\n", WAYS), ("\"a\"b,y,1\n", WAYS), ("\"a\" ,y,1\n", WAYS), ("\"a,y,1\nb,c,2\n", WAYS),
        ("x,\"y,1\nb,c,2\n", WAYS), ("\"x\ny\",y,1\nz,w,2\n", WAYS), (b"a\xffb,y,1\n", UTF8), (_GZIP, UTF8),
    ]),
    Group("quotes that stand twice", "csv", ABC, [*same("\"a\"\"b\",\"\",1\n", "\"\"\"\",\"a,\"\",\"\"b\",1\n", "\"a\\\",y\n"),
                                                  ("\"a\\\"b\",y,1\n", WAYS)], {"escape": "\""}),
    Group("no escapes", "csv", ABC, [*same("\"a\\\",b,1\n"), ("\"a\\\"b\",b,1\n", WAYS)], {"escape": ""}),
    Group("no quotes", "csv", ABC, same("\"a\",b,1\n", "\"a,b\"\",\n"), {"quote": ""}),
    Group("other quotes", "csv", ABC, same("'a,b',\"b\",1\n", "'a\\'b',b,1\n"), {"quote": "'"}),
    Group("header", "csv", ABC, same("", "a,b,c\n", "a,b,c", "\n\na,b,c\nx,y,1\n", "c,b,a\nx,y,1\n", b"\xef\xbb\xbfa,b,c\nx,y,1\n",
                                     "\"a,b\",c\nx,y,1\n", "a\nx,y,1\nz\n"), {"header": True}),
    Group("comments", "csv", ABC, same("#c\na,b,c\n#d\nx,y,1\n #e,f,1\n", "#\n", "a,b,c\n\"#x\",y,1\n"),
          {"header": True, "comment": "#"}),
    Group("comments of several lines", "csv", ABC, same("#c\na,b,c\n#d\nx,y,1\n #e,f,1\n\n   \nx,y,2\n"),
          {"header": True, "comment": "#", "multiLine": True}),
    Group("several lines", "csv", ABC, [
        *same("\"x\ny\",y,1\nz,w,2\n", "\"x\r\ny\",y,1\r\nz,w,2\r\n", "x,y,1\n\n  \n,\nz,w,2\n", b"\xef\xbb\xbfx,y,1\n"),
        *same("\"\n\",\"a\\\"\nb\",1\n", "a\"b,y,1\n"),
        ("\"x\ny\",y,1\r\nz,w,2\r\n", ENDS), ("\"x\r\ny\",y,1\nz,w,2\n", ENDS), ("x,y,1\r\nz,w,2\nq,r,3\rm,n,4", ENDS),
        ("x,y,\"1\n", WAYS),
    ], {"multiLine": True}),
    Group("a header of several lines", "csv", ABC, same("\"a\n1\",b,c\nx,y,1\n", "\n\na,b,c\n\"x\",\"\ny\",1\n"),
          {"multiLine": True, "header": True}),
    Group("one column", "csv", "a string", same("x\n\n  \n\"\"\nz\n", "x,y\nz\n")),
    Group("one column of several lines", "csv", "a string", same("x\n\n  \n\"\"\nz\n"), {"multiLine": True}),
    Group("blanks around", "csv", ABC, same(" x , y , 1 \n,\" z \", 2\n\" z \",\" z\" , 2\n", "  ,y,1\n", " a b , \"q, r\" ,3\n"),
          {"ignoreLeadingWhiteSpace": True, "ignoreTrailingWhiteSpace": True}),
    Group("blanks before", "csv", ABC, same(" x , y , 1 \n", "\tx,  \"y \",1\n"), {"ignoreLeadingWhiteSpace": True}),
    Group("blanks after", "csv", ABC, same(" x , y , 1 \n", "x,\"y \",1 \n"), {"ignoreTrailingWhiteSpace": True}),
    Group("words for nothing", "csv", ABC, same("\"\",NA,1\n\"NA\",,2\n", "NA\nx,\"\"\n"), {"nullValue": "NA"}),
    Group("words for the empty text", "csv", ABC, same("\"\",x,1\n,y,2\n", "\"\"\n,x\n"), {"emptyValue": "E"}),
    Group("a long separator", "csv", ABC, same("a||b||1\n", "a|||b||1\n", "\"a||b\"||\"c\"||1\n||\n", "a||b\n"), {"sep": "||"}),
    Group("a separator that is not ASCII", "csv", ABC, same("a§b§1\n", "\"a§b\"§b\n"), {"sep": "§"}),
    Group("tabs", "csv", ABC, same("a\tb\t1\n\t\t\n\"a\tb\"\t\t2\n"), {"delimiter": "\\t"}),
    Group("gzip", "csv", ABC, [*same(_GZIP, _GZIP + gzip.compress(b"x,y,2\n")), (gzip.compress(b"x,y,1\n" * 99)[:-12], DAMAGED),
                               (_GZIP + b"junk", DAMAGED), (b"x,y,1\n", DAMAGED)], suffix=".gz"),
    Group("bzip2", "csv", ABC, same(bz2.compress(b"x,y,1\n")), suffix=".bz2"),
    Group("deflate", "csv", ABC, same(zlib.compress(b"x,y,1\n")), suffix=".deflate"),
    Group("zstandard", "csv", ABC, same(pa.compress(b"x,y,1\n", codec="zstd", asbytes=True)), suffix=".zst"),
]  # fmt: skip

_INTEGERS = (
    "1| 1|1 |+1|-1|--1|1.0|1.5|1e3|007|٣|127|128|32768|2147483648|9223372036854775808|x|-|+|1_0|1L|0x10|1\t|-0|1,0"
)
_FLOATS = (
    "1|1.5| 1.5|1.5 |+1.5|1e3|1E+3|1d|1f|1D|0x1p3|0x1p3d|NaN|nan|Inf|-Inf|Infinity|-Infinity|+Infinity|inf|1e400|1e-400|"
    ".5|5.|.|1,5|-0|1\t.|1.5\t|\x0b1|1_0|1.17549435E-38|3.4028236e38|٣|1e|+Inf|16777217.0000001|8.5899346E9|16777217|"
    "1.00000017881393421514957253748434595763683319091796875001|1.000000178813934|7.006492321624085e-46|1e-45|d|-"
)
_DECIMALS = (
    "1|1.5|1.005|1.015|999.994|999.995|1000|1,000.5|1e2| 1|1 |+1|-1|.5|5.|x|1e-3|0x1|1,|1__|٣|1e400|-0|.|1e|0.005"
)
_DATES = (
    "2020-01-01| 2020-01-01 |2020-1-1|2020|2020-01|20200101|2020-02-30|2020-01-01T10:00|2020-01-01 10:00|2020-01-01x|today|"
    "0001-01-01|10000-01-01|-1-01-01|01/02/2020|2020-01-01T|1582-10-10|x"
)
_TIMES = (
    "2020-01-01|2020-01-01 10:00:00|2020-01-01T10:00:00Z|2020-01-01 10:00:00.123456789|2020-01-01 10:00:00+02:00|"
    "2020-01-01 10:00:00 Europe/Berlin|2020-01-01 10|2020-01-01 10:0|now|epoch|2020-1-1 1:2:3| 2020-01-01 |"
    "2020-01-01 24:00:00|x|2020|2020-01|1577836800|2020-01-01 10:00:00.|20200101|2020-01-01 10:00:00 +1|2020-02-30|"
    "2020-03-29 02:30:00|2020-10-25 02:30:00|01/02/2020"
)


def _values(types: list[str], texts: str, zone: str = "UTC", *unread: str) -> list[Group]:
    files = [(f"{text};k\n", None) for text in texts.split("|")] + [(f"{text};k\n", UNKNOWN) for text in unread]
    named = f" in {zone}" if zone != "UTC" else ""
    return [Group(f"{t}{named}", "csv", f"v {t}, k string", list(files), {"sep": ";"}, zone=zone) for t in types]


VALUES = [
    *_values(["tinyint", "smallint", "int", "bigint"], _INTEGERS),
    *_values(["float", "double"], _FLOATS),
    *_values(["boolean"], "true|TRUE|True|t|yes|1|false| true|true |FALSE|n|0"),
    *_values(["decimal(5,2)", "decimal(38,10)"], _DECIMALS + "|123456789012345678901234567890|0.00000000005|1e20"),
    *_values(["date"], _DATES, "UTC", "2020-01-01GMT"),
    *_values(["timestamp"], _TIMES, "UTC", "10:00:00", "T10:00", "2020-01-01 10:00:00 PST", "2020-01-01GMT"),
    *_values(["timestamp"], _TIMES, "Europe/Berlin"),
    *_values(["timestamp_ntz"], _TIMES + "|10:00:00|2020-01-01 10:00:00 PST"),
    *_values(["binary"], "ab|"),
    Group("words for numbers", "csv", "v double, k string", same("no;k\n", "1;k\n", "NaN;k\n", "X;k\n", "-X;k\n"),
          {"sep": ";", "nanValue": "no", "positiveInf": "X", "negativeInf": "-X"}),
]  # fmt: skip

SABC = "a string, b int, c double"
NESTED = "s struct<x:int,y:string>, l array<int>, m map<string,int>, z string"
DEEP = (
    "l array<struct<x:int,y:string>>, z string, n struct<a:struct<b:array<double>>>, "
    "d struct<d:date,t:timestamp,q:decimal(5,2)>, m map<string,date>"
)
TYPES = "d date, t timestamp, n timestamp_ntz, q decimal(5,2), o boolean, f float, y tinyint, h smallint, i bigint, x binary"
JSON = [
    Group("lines", "json", SABC, [
        *lines("""
{"a":"x","b":1,"c":1.5}
{"A":"x","a":"y","B":1}
{"a":"x","a":"y"}
{"a":"x","a":null}
{"b":1,"b":"x"}
{"b":"x","b":1}
{"a":1}
{"a":1.50}
{"a":1e3}
{"a":true}
{"a":"é\\u00e9\\n\\u0000"}
{"a":"x\\ud800y"}
{"a":"\\ud83d\\ude00"}
{"b":1.0}
{"b":"1"}
{"b":2147483648}
{"b":true}
{"b":{}}
{"b":[]}
{"b":""}
{"b":-0,"c":-0}
{"c":-0.0}
{"c":"NaN"}
{"c":NaN}
{"c":-Infinity}
{"c":"+INF"}
{"c":"INF"}
{"c":1e400}
{"c":12345678901234567890}
{"a":"x","b":"bad","c":1.5}
{"a":"x","b":
x
5
"s"
null
[]
[{"a":"p"},{"a":"q"}]
[1]
[{"a":"x"},5]
[null]
{}
{"a":"x"} {"a":"y"}
{"a":"x"}{"a":"y"}
{"a":"z"} junk
{"a":"w"},
{"a":"x",}
{a:"x"}
/* x */{"a":"x"}
{"a":"x\ty"}
{"b":01}
{"c":.5}
{"b":+1}
{"b":1}{
{"a":5,"b":[1,{"a":"q"}],"c":1}
{"c":{"a":"z"},"b":4}
{"a" : "x" , "b":2 }
{"a":"{x} y"}
"""),
        *same("", "\n \n", b"\xef\xbb\xbf{\"a\":\"x\"}\n", '{"a":"x"}\r\n{"a":"y"}\r{"a":"z"}\n', '{"a":"x\x00"}\n'),
        *same('{"a":"x"}\n\n   \n{"b":1}\n', '{"a":"x"}\n{"z":\n{"b":1}}\n'),
        ("{'a':'x'}\n", ALONE), ('{"c":INF}\n', ALONE), (b'{"a":"x\xffy"}\n', UTF8),
        ('{"a":{"x": 1}}\n', RAW), ('{"a":[1, "b" ]}\n', RAW),
    ]),
    Group("one value", "json", SABC, same('[{"a":"x"},\n{"a":"y"}]', '{"a":\n"x"}\n{"a":"y"}', '{"a":\n"x"', " \n "),
          {"multiLine": True}),
    Group("nested", "json", NESTED, [
        *lines("""
{"s":{"x":1,"y":"a"},"l":[1,2,null],"m":{"k":1},"z":"z"}
{"s":{"X":1},"l":[],"m":{},"z":""}
{"s":{"x":"bad","y":"a"},"z":"z"}
{"s":"bad","l":"bad","m":"bad","z":"z"}
{"s":[{"x":1}],"l":5,"z":"z"}
{"m":{"k":1,"k":2},"z":"z"}
{"s":null,"l":null,"m":null,"z":"z"}
{"s":"","l":"","m":"","z":"z"}
{"l":{"x":1},"m":[1],"z":"z"}
{"s":{"x":[1],"y":"a"},"z":"z"}
{"s":{"x":{"q":1},"y":"a"},"z":"z"}
{"s":{"x":1,"x":2}}
"""),
        ('{"l":[1,"x",3],"z":"z"}', INNER), ('{"m":{"k":"x","j":1},"z":"z"}', INNER),
    ]),
    Group("deep", "json", DEEP, same(
        '{"l":[{"x":1,"y":"a"},{"x":"bad","y":"b"},{"y":"c"}],"z":"z"}', '{"l":[null],"z":"z"}', '{"l":{"x":1,"y":"q"},"z":"z"}',
        '{"n":{"a":{"b":[1,2.5,null]}},"d":{"d":"2020-01-01","t":"2020-01-01 10:00:00","q":1.005}}',
        '{"d":{"d":"x","t":5,"q":"1,0"},"m":{"a":"2020-02-02"}}',
    )),
    Group("types", "json", TYPES, same(
        '{"d":"2020-01-01","t":"2020-01-01 10:00:00","n":"2020-01-01 10:00:00","o":true,"f":16777217.0000001,"y":1,"h":-32768}',
        '{"d":"x","t":"y","n":"2020-01-01T00:00Z","o":false,"f":1e39,"i":9223372036854775807}',
        '{"d":20200101,"t":1577836800,"n":5,"q":"1.5","o":"true","f":"1.5","y":"1","i":"1","x":"not base64!"}',
        '{"d":"","t":"","n":"","q":"","o":"","f":"","y":"","i":"","x":""}', '{"q":1.005,"t":"x","i":1.0,"x":"YWI="}',
        '{"d":1.5,"t":1.5,"q":1000,"o":1,"f":true,"y":128,"i":9223372036854775808,"x":1}', '{"q":"1,000.5"}', '{"q":"1,0"}',
        '{"y":-128}\n{"y":-129}\n{"y":200}\n{"y":255}\n{"y":256}\n{"h":32768}', '{"q":" 1"}\n{"q":true}\n{"q":1e2}',
        '{"f":8.5899346E9}\n{"f":1.00000017881393421514957253748434595763683319091796875001}\n{"f":3.4028236e38}\n{"f":1e400}',
    )),
    Group("times", "json", "t timestamp", same('{"t":"2020-07-01 10:00:00"}\n{"t":"2020-10-25 02:30:00"}\n{"t":5}'),
          zone="Europe/Berlin"),
    Group("gzip", "json", SABC, same(gzip.compress(b'{"a":"x"}\n')), suffix=".gz"),
]  # fmt: skip
TEXT = [
    Group("text", "text", "value string", [*same("", "a\r\nb\rc\n\n d ", b"\xef\xbb\xbfa\n\xef\xbb\xbfb", "a,\"b\n\x00"), (b"\xff", UTF8)]),
    Group("text under another name", "text", "line string", same("a\nb\n")),
    Group("gzip", "text", "value string", same(gzip.compress(b"a\nb")), suffix=".gz"),
]  # fmt: skip
GROUPS = [*CSV, *VALUES, *JSON, *TEXT]
