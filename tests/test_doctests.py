"""The examples in docstrings are true."""

import doctest
import importlib
import pkgutil

import pytest

import skewless

# The daemon and `python -m` modules do their work when they are imported.
NOT_IMPORTED = {"skewless.runtime.daemon"}
MODULES = [
    module.name
    for module in pkgutil.walk_packages(skewless.__path__, "skewless.")
    if module.name not in NOT_IMPORTED and not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("skewless"):
            raise
        pytest.skip(f"{missing.name} is not installed")
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert failed == 0
