"""Kinds of storage, by the schemes of their URLs, and what is shown of their properties."""

from __future__ import annotations

import pytest

from penstock.errors import StorageError
from penstock.storage.path_names import Names
from penstock.storage.redaction import one_line, storable
from penstock.storage.schemes import HARMLESS_PROPERTIES, KINDS, bucket_url, normal_scheme, open_storage
from penstock.storage.storage import Storage


def test_no_two_kinds_have_the_same_scheme() -> None:
    schemes = [scheme for kind in KINDS for scheme in kind.schemes]
    assert len(schemes) == len(set(schemes))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_kind_opens_the_urls_of_all_its_schemes(kind: type[Storage]) -> None:
    for scheme in kind.schemes:
        place = open_storage(f"{scheme.upper()}://{'' if kind.hadoop is None else 'lake'}/a/b/", {})
        assert (type(place), place.scheme, normal_scheme(scheme)) == (kind, scheme, kind.schemes[0])
        url = place.url_of(f"{place.path}/x.parquet")
        assert place.path_of(url) == f"{place.path}/x.parquet"
        assert open_storage(url, {}).path == f"{place.path}/x.parquet"
        assert bucket_url(url) == ("" if kind.hadoop is None else f"{scheme}://lake")
        assert Names().of(url) == Names().of(f"{kind.schemes[0]}://{place.path}/x.parquet")


def test_an_unknown_scheme_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(StorageError, match=r"unknown kind of storage in gs://…; local paths, file://, s3://, s3a"):
        open_storage("gs://lake/t", {})
    assert bucket_url("gs://lake/t") == ""


def test_what_a_library_says_is_one_short_line_without_a_secret() -> None:
    properties = {"s3.secret-access-key": "top-Secret", "s3.session-token": "", "s3.region": "eu"}
    text = one_line(OSError(f"denied\n  for top-Secret in eu {'x' * 400}"), properties)
    assert text.startswith("denied for *** in eu xxx")
    assert len(text) == 300


def test_only_properties_that_are_known_to_be_harmless_are_written_down() -> None:
    kept = {"s3.region": "eu", "s3.endpoint": "http://localhost:9000"}
    others = {"s3.secret-access-key": "x", "s3.new": "y", "header.x": "z", "client.region": "user@host"}
    assert storable({**kept, **others}, HARMLESS_PROPERTIES) == kept
