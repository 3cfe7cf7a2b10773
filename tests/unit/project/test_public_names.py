"""The public names are all there, each from where it lives; a wrong one is an ordinary AttributeError."""

from importlib import metadata

import pytest

import penstock
from penstock import errors


def test_every_public_name_can_be_loaded():
    assert all(getattr(penstock, name) is not None for name in penstock.__all__)
    assert set(penstock._HOMES) | {"__version__"} == set(penstock.__all__)
    assert set(penstock.__all__) <= set(dir(penstock))


def test_a_public_name_is_the_object_of_its_module():
    assert penstock.PenstockError is errors.PenstockError


def test_a_wrong_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'penstock' has no attribute 'conect'"):
        _ = penstock.conect


def test_the_installed_version_is_the_one_in_the_code():
    assert metadata.version("penstock") == penstock.__version__
