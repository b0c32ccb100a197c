"""Runs the notebooks of this folder, and compares their outputs with the stored ones.

    python examples/run_notebooks.py            fails if a cell fails, or an output has another text
    python examples/run_notebooks.py --update   stores the new outputs

Needs gridfusion, nbclient, ipykernel, and the libraries that the notebooks import. Pictures are not compared, because fonts and versions of
libraries change them.
"""

from __future__ import annotations

import argparse
import difflib
import sys
import tempfile
from pathlib import Path

import matplotlib.font_manager  # noqa: F401  Makes its cache here; a kernel would print about it.
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from traitlets.config import Config

FOLDER = Path(__file__).resolve().parent


def run(notebook: NotebookNode) -> NotebookNode:
    """Return a notebook with new outputs."""
    notebook = nbformat.from_dict(notebook)
    with tempfile.TemporaryDirectory() as sockets:
        client = NotebookClient(
            notebook,
            timeout=120,
            kernel_name="python3",
            record_timing=False,
            resources={"metadata": {"path": str(FOLDER)}},
            config=Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}}),
        )
        try:
            client.execute()
        except CellExecutionError as error:
            sys.exit(str(error))
    # The version of Python is no part of the notebook.
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for cell in code(notebook):
        cell.metadata = {}
        for data in (output.data for output in cell.outputs if "data" in output):
            if "image/png" in data:
                data.pop("image/svg+xml", None)
    return notebook


def code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def text(notebook: NotebookNode) -> list[str]:
    """Return the lines of all outputs. A picture is a line with its type."""
    lines = []
    for number, cell in enumerate(code(notebook), 1):
        for output in cell.outputs:
            lines.append(f"cell {number}: {output.output_type}")
            lines += output.get("text", "").splitlines()
            for kind, value in sorted(output.get("data", {}).items()):
                lines.append(kind)
                lines += value.splitlines() if kind.startswith("text/") else []
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="store the new outputs")
    update = parser.parse_args().update
    differences: list[str] = []
    paths = sorted(FOLDER.glob("*.ipynb"))
    for path in paths:
        old = nbformat.read(path, as_version=4)
        new = run(old)
        lines = difflib.unified_diff(text(old), text(new), f"{path.name}, stored", f"{path.name}, now", lineterm="")
        differences += lines
        if update:
            nbformat.write(new, path)
    if differences and not update:
        print(*differences, sep="\n")
        sys.exit("the outputs differ; examples/run_notebooks.py --update stores the new ones")
    print(f"{len(paths)} notebook{'s' if len(paths) != 1 else ''}: all cells ran")


main()
