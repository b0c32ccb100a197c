"""The stub of the compiled module, held against the module."""

from __future__ import annotations

import ast
import doctest
import inspect
from pathlib import Path

import pytest

import gridfusion as gf
from gridfusion import _connection, _internal

PACKAGE = Path(gf.__file__).parent


def stub_classes() -> dict[str, dict[str, ast.FunctionDef]]:
    tree = ast.parse((PACKAGE / "_internal.pyi").read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return {node.name: {it.name: it for it in node.body if isinstance(it, ast.FunctionDef)} for node in classes}


def test_the_stub_has_the_names_of_the_module():
    classes = {name for name, member in vars(_internal).items() if inspect.isclass(member)}
    assert set(stub_classes()) == classes
    inherited = {*dir(object), "__module__", "__doc__", "__new__", "__getstate__"}
    # Python itself adds these to a class with a length.
    for name, methods in stub_classes().items():
        members = {it for it in vars(getattr(_internal, name)) if it not in inherited}
        written = {"__new__" if it == "__init__" else it for it in methods} - {"__new__"}
        assert members == written, name


def test_the_stub_has_the_parameters_of_the_module():
    for name, methods in stub_classes().items():
        for method, node in methods.items():
            if method.startswith("__") and method not in ("__arrow_c_stream__",) or isinstance(node, ast.FunctionDef) and node.decorator_list:
                continue
            written = [it.arg for it in node.args.args]
            found = list(inspect.signature(getattr(getattr(_internal, name), method)).parameters)
            assert written == found, f"{name}.{method}"


def test_the_stub_has_the_functions_of_the_module():
    tree = ast.parse((PACKAGE / "_internal.pyi").read_text())
    written = {node.name: [it.arg for it in node.args.args] for node in tree.body if isinstance(node, ast.FunctionDef)}
    functions = {name: member for name, member in vars(_internal).items() if inspect.isbuiltin(member)}
    assert written == {name: list(inspect.signature(member).parameters) for name, member in functions.items()}


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.parametrize("module", [gf, _connection], ids=lambda it: it.__name__)
def test_examples_in_the_documentation(module, monkeypatch):
    monkeypatch.chdir(Path(__file__).resolve().parents[2])
    outcome = doctest.testmod(module)
    assert outcome.attempted and not outcome.failed
