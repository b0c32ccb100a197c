"""Writes random datasets with the cells that xarray, zarr-python or h5py find in them.

    python3 tests/data/foreign/random_datasets.py FOLDER --count 300 --seed 1

    FOLDER/0007_zarr_v3.zarr                  a dataset; its name says which writer made it
    FOLDER/expected/0007_zarr_v3.zarr/a.csv   the cells of its variable `a`
    FOLDER/manifest.json                      an entry per variable

The rules of the CSVs are in expected/NOTES.md. Same seed and same versions of the packages: same datasets.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import expected  # noqa: E402
import random_files  # noqa: E402
import random_xarray  # noqa: E402
import random_zarr  # noqa: E402

warnings.simplefilter("ignore")

WRITERS = [*random_xarray.WRITERS, *random_zarr.WRITERS, *random_files.WRITERS]


def write(folder, number, seed):
    """Writes a dataset, in more attempts if a package refuses, and returns its entries of the manifest."""
    writer, suffix = WRITERS[number % len(WRITERS)]
    name = f"{number:04}_{writer.__name__}{suffix}"
    path = folder / name
    for attempt in range(20):
        random = np.random.default_rng([seed, number, attempt])
        try:
            writer(random, path)
        except Exception as error:
            print(f"{name}, attempt {attempt}: {type(error).__name__}: {str(error).splitlines()[0][:140]}")
            random_xarray.remove(path)
            continue
        return expected.write_expected(folder, name, path)
    raise SystemExit(f"{name}: no attempt succeeded")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    began = time.time()
    entries = []
    for number in range(arguments.count):
        entries += write(arguments.folder, number, arguments.seed)
    expected.write_manifest(arguments.folder / "manifest.json", entries)
    unreadable = sum("unreadable" in entry for entry in entries)
    seconds = time.time() - began
    print(f"{arguments.count} datasets, {len(entries)} variables, {unreadable} unreadable, {seconds:.0f} s")


if __name__ == "__main__":
    main()
