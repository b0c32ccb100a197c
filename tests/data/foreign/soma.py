"""Writes soma/cells.soma beside this script with the library tiledbsoma, 2.3.0: cells with a type, genes, and counts.

    pip install tiledbsoma==2.3.0
    python soma.py

The store is in the repository: the library needs other versions of packages than the scripts beside this one.
"""

import shutil
from pathlib import Path

import numpy as np

STORE = Path(__file__).resolve().parent / "soma/cells.soma"
GENES = ["CD3", "CD19", "MS4A1"]
KINDS = ["B", "T", "T", "B", "T", None]


def counts():
    """Returns a row per cell and a column per gene."""
    random = np.random.default_rng(1)
    return random.integers(1, 9, (6, 3)) * (random.random((6, 3)) > 0.4)


def main():
    import anndata
    import pandas as pd
    import scipy.sparse
    import tiledbsoma.io

    shutil.rmtree(STORE, ignore_errors=True)
    STORE.parent.mkdir(exist_ok=True)
    cells = pd.DataFrame({"cell_type": pd.Categorical(KINDS)}, index=[f"cell{at}" for at in range(6)])
    matrix = scipy.sparse.csr_matrix(counts().astype("f4"))
    data = anndata.AnnData(matrix, obs=cells, var=pd.DataFrame(index=GENES))
    tiledbsoma.io.from_anndata(str(STORE), data, "RNA")


if __name__ == "__main__":
    main()
