"""The predicate tree: a dozen node types, immutable, hashable, and safe at any depth.

A tree is first *parsed* (columns are names, types are unknown), then *bound* to a schema (every node has a type, or
`None` where an opaque function hides it). The same classes serve both states.

What is not a node of its own is written with others: `a <> b` is `Not(Compare("=", a, b))`, `BETWEEN` is two
comparisons, `x IN (y, 1)` with a column in the list is an `Or`. That keeps three-valued logic in few places.

Every walk over a tree goes through `fold`, which needs no Python recursion: 10,000 nested ANDs are an ordinary input.

>>> tree = And((Compare(">", Column(("x",)), Literal(5, pa.int32())), IsNull(Column(("y",)))))
>>> [column.name for column in terms_of(tree)]
['x', 'y']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

import pyarrow as pa

T = TypeVar("T")


class Expr:
    """Base of all nodes. Equality and hash are structural and ignore `at`, the position in the source text."""

    __slots__ = ("_hash",)
    _hash: int
    _child_fields: ClassVar[tuple[str, ...]] = ()
    type: pa.DataType | None
    at: int | None

    @property
    def children(self) -> tuple[Expr, ...]:
        """The nodes directly below this one."""
        return ()

    @property
    def own(self) -> Any:
        """What distinguishes this node besides its children."""
        return ()

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            pass
        stack: list[Expr] = [self]
        while stack:  # children first, so that no hash recurses; what has a hash is not walked again
            node = stack[-1]
            waiting = [child for child in node.children if not hasattr(child, "_hash")]
            stack.extend(waiting)
            if not waiting:
                parts = (type(node).__name__, node.own, tuple(child._hash for child in node.children))
                object.__setattr__(node, "_hash", hash(parts))
                stack.pop()
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Expr) or hash(self) != hash(other):
            return False
        pairs: list[tuple[Expr, Expr]] = [(self, other)]
        while pairs:
            a, b = pairs.pop()
            if a is b:
                continue
            if type(a) is not type(b) or a.own != b.own or len(a.children) != len(b.children):
                return False
            pairs.extend(zip(a.children, b.children, strict=True))
        return True

    def __str__(self) -> str:
        from penstock.expr.sql_text import to_sql

        return to_sql(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def _node(cls: type[T]) -> type[T]:
    """A node class: fields that hold nodes are its children, all others but keyword-only ones distinguish it."""
    node: Any = dataclass(frozen=True, eq=False, repr=False, slots=True)(cls)
    kinds = {f.name: f.type for f in fields(node) if f.init and not f.kw_only}  # the annotations are texts
    names = tuple(name for name, kind in kinds.items() if kind in ("Expr", "tuple[Expr, ...]"))
    own = [name for name in kinds if name not in names]
    if names:
        nodes = attrgetter(*names)
        node._child_fields = names
        node.children = property(nodes if len(names) > 1 or kinds[names[0]] != "Expr" else lambda self: (nodes(self),))
    if own and "own" not in vars(cls):
        node.own = property(attrgetter(*own))
    return node  # type: ignore[no-any-return]


@_node
class Column(Expr):
    """A column, or a field inside one: `path` goes from the top of the schema downwards."""

    path: tuple[str, ...]
    type: pa.DataType | None = None
    at: int | None = field(default=None, kw_only=True)

    @property
    def name(self) -> str:
        """The dotted name, for messages."""
        return ".".join(self.path)


@_node
class Lookup(Expr):
    """The value of a map (or the element of an array) under a key: `m['k']`."""

    container: Expr
    key: Expr
    type: pa.DataType | None = None
    at: int | None = field(default=None, kw_only=True)


@_node
class Literal(Expr):
    """A constant in its physical form (see `types`); `None` is NULL."""

    value: Any
    type: pa.DataType
    at: int | None = field(default=None, kw_only=True)

    @property
    def own(self) -> Any:
        # 1, 1.0 and True are equal in Python, NaN is not equal to itself, and 0.0 = -0.0 print differently.
        return repr(self.value), self.type


@_node
class Cast(Expr):
    """`CAST(child AS type)`, or `TRY_CAST` when `safe`."""

    child: Expr
    type: pa.DataType
    safe: bool = False
    at: int | None = field(default=None, kw_only=True)


@_node
class Call(Expr):
    """A function or operator by its Spark name in lower case; arithmetic is `+`, `-`, `*`, `/`, `%`, `div`."""

    name: str
    args: tuple[Expr, ...]
    type: pa.DataType | None = None
    at: int | None = field(default=None, kw_only=True)
    hint: str | None = field(default=None, kw_only=True)  # a suggestion for errors, where the call is not evaluated


@_node
class Condition(Expr):
    """Base of the nodes that are true, false or NULL."""

    at: int | None = field(default=None, kw_only=True)
    type: pa.DataType = field(default=pa.bool_(), init=False)


@_node
class Compare(Condition):
    """`left op right` with op one of `=`, `<=>`, `<`, `<=`, `>`, `>=`."""

    op: str
    left: Expr
    right: Expr


@_node
class In(Condition):
    """`child IN (options…)` over constants; a NULL among them makes a miss unknown instead of false."""

    child: Expr
    options: tuple[Any, ...]  # constants; literals of one type once bound


@_node
class IsNull(Condition):
    """`child IS NULL`: the one test that is never unknown."""

    child: Expr


@_node
class Like(Condition):
    """`child LIKE pattern ESCAPE escape` with a constant pattern."""

    child: Expr
    pattern: str
    escape: str = "\\"


@_node
class Not(Condition):
    """Three-valued negation: NOT NULL is NULL."""

    child: Expr


@_node
class And(Condition):
    """Three-valued conjunction of any number of arms."""

    arms: tuple[Expr, ...]


@_node
class Or(Condition):
    """Three-valued disjunction of any number of arms."""

    arms: tuple[Expr, ...]


UNKNOWN = "expression"  # the name of a call whose first argument is SQL that only Spark understands
TRUE = Literal(True, pa.bool_())
FALSE = Literal(False, pa.bool_())
NULL = Literal(None, pa.bool_())


def walk(root: Expr, into: type | tuple[type, ...] = Expr) -> Iterator[Expr]:
    """Every node of the tree, children before parents; a shared node once. See `fold` for `into`."""
    visited: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            yield node
        elif id(node) not in visited:
            visited.add(id(node))
            stack.append((node, True))
            if isinstance(node, into):
                stack.extend((child, False) for child in reversed(node.children))


def fold(root: Expr, visit: Callable[[Expr, tuple[T, ...]], T], into: type | tuple[type, ...] = Expr) -> T:
    """Compute a value for every node from those of its children, bottom up, without recursion.

    `into` stops the descent at other kinds of nodes: they are visited as leaves.

    >>> fold(And((TRUE, Not(FALSE))), lambda node, below: 1 + sum(below))
    4
    >>> fold(And((TRUE, Not(FALSE))), lambda node, below: 1 + sum(below), into=And)
    3
    """
    done: dict[int, T] = {}
    for node in walk(root, into):
        below = node.children if isinstance(node, into) else ()
        done[id(node)] = visit(node, tuple(done[id(child)] for child in below))
    return done[id(root)]


def rebuild(node: Expr, children: Sequence[Expr]) -> Expr:
    """`node` over new children, or `node` itself when they are the old ones."""
    if len(children) == len(node.children) and all(a is b for a, b in zip(children, node.children, strict=True)):
        return node
    names = node._child_fields
    one_each = isinstance(getattr(node, names[0]), Expr)
    changes = dict(zip(names, children, strict=True)) if one_each else {names[0]: tuple(children)}
    return cast(Expr, replace(cast(Any, node), **changes))


def is_term(node: Expr) -> bool:
    """Whether something can be known of `node` from outside: a column, a nested field, or a constant key of a map."""
    if isinstance(node, Column):
        return True
    return isinstance(node, Lookup) and isinstance(node.container, Column) and isinstance(node.key, Literal)


def column_of(term: Expr) -> str:
    """The name of the column that a term lies in."""
    column = term.container if isinstance(term, Lookup) else term
    assert isinstance(column, Column)
    return column.path[0]


def terms_of(root: Expr) -> tuple[Column | Lookup, ...]:
    """The terms of a tree, each once, in the order of their first appearance."""
    terms: dict[Column | Lookup, None] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if is_term(node):
            terms.setdefault(cast(Column | Lookup, node))
        else:
            stack.extend(reversed(node.children))
    return tuple(terms)


def conjuncts(root: Expr) -> tuple[Expr, ...]:
    """The top-level arms of an AND; any other node is its own only arm; TRUE has none."""
    if root == TRUE:
        return ()
    return root.arms if isinstance(root, And) else (root,)


def connected(kind: type[And] | type[Or], arms: Sequence[Expr]) -> Expr:
    """The arms under AND or OR: one alone is itself, none at all is TRUE or FALSE."""
    if not arms:
        return TRUE if kind is And else FALSE
    return arms[0] if len(arms) == 1 else kind(tuple(arms))
