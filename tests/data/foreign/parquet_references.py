"""Compares cells of random references in Parquet with what xarray reads from the same references.

    python3 tests/data/foreign/parquet_references.py PROGRAM FOLDER [--count 40] [--seed 1]

    FOLDER/0/data.h5, FOLDER/0/objects   chunks of HDF5, and objects that are chunks
    FOLDER/0/refs.parq                   references to them, by LazyReferenceMapper of fsspec
    FOLDER/0/expected.json               the cells of each variable; null where xarray has none

Tables have random numbers of rows, around the number of chunks and powers of two, and are written by fastparquet or pyarrow.
References are bytes of HDF5 files, whole objects, bytes in the table, or absent. Tables without a reference are sometimes
deleted, as if they had never been written.

xarray reads the references as a dictionary, which needs no table, and again from the tables. With `-` as PROGRAM, only writes
the folders: the ignored test of crates/zarr reads them.
"""

import argparse
import base64
import json
import os
import shutil
import sys
import warnings
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import fsspec  # noqa: E402
import fsspec.implementations.reference  # noqa: E402
import h5py  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import xarray as xr  # noqa: E402
from fsspec.implementations.reference import LazyReferenceMapper  # noqa: E402
from kerchunk.hdf import SingleHdf5ToZarr  # noqa: E402

TYPES = ("f4", "f8", "i2", "i4", "i8")


def data(random):
    """Writes a file into the current folder."""
    with h5py.File("data.h5", "w") as file:
        sizes = [int(random.integers(1, 14)) for _ in range(3)]
        for axis, size in enumerate(sizes):
            file[f"d{axis}"] = np.arange(1, size + 1) * 0.5
            file[f"d{axis}"].make_scale(f"d{axis}")
        for number in range(4):
            axes = sorted(random.choice(3, size=int(random.integers(0, 4)), replace=False))
            shape = tuple(sizes[axis] for axis in axes)
            values = random.integers(-90, 90, shape)
            kind = str(random.choice(TYPES))
            options = {}
            if axes:
                options["chunks"] = tuple(int(random.integers(1, size + 1)) for size in shape)
                options["compression"] = random.choice([None, "gzip"])
                options["shuffle"] = bool(random.integers(2))
                options["fillvalue"] = np.array(random.choice([0, -1, 99])).astype(kind)
            variable = file.create_dataset(f"v{number}", shape, kind, **options)
            if axes:
                # Chunks behind were never written.
                written = int(random.integers(0, shape[0] + 1))
                variable[:written] = values[:written]
            else:
                variable[()] = values
            for at, axis in enumerate(axes):
                variable.dims[at].attach_scale(file[f"d{axis}"])
        return sizes


def objects(random, refs, size):
    """Adds a variable whose chunks are objects of their own."""
    chunk = int(random.integers(1, size + 1))
    array = {"shape": [size], "chunks": [chunk], "dtype": "<i4", "fill_value": -1, "order": "C"}
    refs["whole/.zarray"] = json.dumps(array | {"filters": None, "compressor": None, "zarr_format": 2})
    refs["whole/.zattrs"] = json.dumps({"_ARRAY_DIMENSIONS": ["d0"]})
    Path("objects").mkdir()
    for number in range(-(-size // chunk)):
        path = Path(f"objects/{number}")
        path.write_bytes(random.integers(0, 99, chunk).astype("<i4").tobytes())
        refs[f"whole/{number}"] = [str(path)]


def changed(random, refs):
    """Puts bytes into the references, leaves some out, and names files in other ways."""
    for key, reference in list(refs.items()):
        if not isinstance(reference, list):
            continue
        path, choice = reference[0], random.random()
        if choice < 0.2 and not key.startswith("d"):
            del refs[key]
        elif choice < 0.4:
            start, size = reference[1:] if len(reference) == 3 else (0, None)
            with open(path, "rb") as file:
                file.seek(start)
                refs[key] = "base64:" + base64.b64encode(file.read(size)).decode()
        elif choice < 0.7:
            reference[0] = str(random.choice([os.path.abspath(path), "file://" + os.path.abspath(path)]))
    return refs


def chunks_of(array):
    return int(np.prod([-(-size // chunk) for size, chunk in zip(array["shape"], array["chunks"], strict=True)]))


def tables(random, refs):
    """Writes the references, and deletes tables without any."""
    arrays = {key.rsplit("/", 1)[0]: json.loads(text) for key, text in refs.items() if key.endswith(".zarray")}
    most = max(chunks_of(array) for array in arrays.values())
    near = int(random.choice([most, 2 ** int(random.integers(0, 8)), int(random.integers(1, 300))]))
    rows = max(1, near + int(random.integers(-1, 2)))
    engine = str(random.choice(["fastparquet", "pyarrow"]))
    Path("refs.parq").mkdir()
    threshold = int(random.integers(1, 12))
    mapper = LazyReferenceMapper.create("refs.parq", record_size=rows, engine=engine, categorical_threshold=threshold)
    for key in sorted(refs):
        mapper[key] = refs[key]
    mapper.flush()
    for table in Path("refs.parq").glob("*/refs.*.parq"):
        columns = pd.read_parquet(table)
        if columns.path.isna().all() and columns.raw.isna().all() and random.integers(2):
            table.unlink()
    return f"{rows} rows by {engine}, {most} chunks"


class Tables(LazyReferenceMapper):
    """Tables with nulls that are None: pandas 3 reads some as NaN, which fsspec takes for a path."""

    def setup(self):
        super().setup()
        read = self.open_refs

        def without_nans(field, record):
            columns = read(field, record)
            return {name: np.where(pd.isna(values), None, values) for name, values in columns.items()}

        without_nans.cache_clear = read.cache_clear
        self.open_refs = without_nans


def opened(references):
    """Returns the variables that xarray reads."""
    options = {"remote_protocol": "file", "skip_instance_cache": True}
    mapper = fsspec.filesystem("reference", fo=references, **options).get_mapper("")
    with xr.open_dataset(mapper, engine="zarr", consolidated=False, decode_times=False) as found:
        return {name: np.asarray(found[name].values, "f8") for name in found.variables}


def expected(refs):
    """Returns the cells of variables."""
    found, again = opened(dict(refs)), opened("refs.parq")
    assert all(np.array_equal(found[name], again[name], equal_nan=True) for name in found), "tables differ"
    variables = {}
    for name, values in found.items():
        kind = json.loads(refs[f"{name}/.zarray"])["dtype"].lstrip("<|")
        dims = json.loads(refs[f"{name}/.zattrs"])["_ARRAY_DIMENSIONS"]
        flat = [None if np.isnan(value) else float(value) for value in values.ravel()]
        variables[name] = {"type": kind, "dims": dims, "values": flat}
    return variables


def write(folder, random):
    folder.mkdir(parents=True)
    os.chdir(folder)
    sizes = data(random)
    refs = SingleHdf5ToZarr("data.h5", inline_threshold=int(random.choice([0, 60, 500]))).translate()["refs"]
    # kerchunk stores texts, which may be base64.
    refs = {key: text.decode() if isinstance(text, bytes) else text for key, text in refs.items()}
    objects(random, refs, sizes[0])
    refs = changed(random, refs)
    about = tables(random, refs)
    variables = expected(refs)
    Path("expected.json").write_text(json.dumps(variables))
    print(f"{folder.name}: {about}")
    return variables


def wrong(program, folder, variables):
    """Returns the number of variables that the program reads otherwise."""
    from compare_tables import answers

    count = 0
    names = [name for name in variables if not name.startswith("d")]
    statements = []
    for name in names:
        dims = ", ".join(f'"{dim}"' for dim in variables[name]["dims"])
        order = f" ORDER BY {dims}" if dims else ""
        statements.append(f"SELECT CAST(value AS DOUBLE) AS value FROM '{folder}/refs.parq#{name}'{order}")
    for name, rows in zip(names, answers(program, statements), strict=True):
        values = rows if isinstance(rows, str) else [row.get("value") for row in rows]
        if values != variables[name]["values"]:
            print(f"WRONG: {name} in {folder}\n  {values}\n  expected {variables[name]['values']}")
            count += 1
    return count


def main():
    warnings.filterwarnings("ignore")
    fsspec.implementations.reference.LazyReferenceMapper = Tables
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    program = arguments.program if arguments.program == "-" else os.path.abspath(arguments.program)
    root = arguments.folder.resolve()
    shutil.rmtree(root, ignore_errors=True)
    count = 0
    for number in range(arguments.count):
        random = np.random.default_rng((arguments.seed, number))
        variables = write(root / str(number), random)
        count += 0 if program == "-" else wrong(program, root / str(number), variables)
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
