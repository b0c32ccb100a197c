"""Writes references in Parquet, as kerchunk and VirtualiZarr write them with fsspec.

    python3 tests/data/references/make.py

    data.h5, whole.0, whole.1    chunks of HDF5, and objects that are chunks
    fastparquet.parq             tables of 5 references by fastparquet, the default of fsspec
    pyarrow.parq                 tables of 4 references by pyarrow, whose column `path` may have no type
    virtualizarr.parq            tables of 100 references to the same HDF5 file by VirtualiZarr

Paths are relative to this folder. Needs numpy, h5py, kerchunk, fastparquet, pyarrow and virtualizarr. Contents are fixed.
"""

import base64
import json
import os
import shutil
import warnings
from pathlib import Path

import h5py
import numpy as np

warnings.filterwarnings("ignore")
HERE = Path(__file__).resolve().parent


def data(path):
    """Cells tell where they are. The last rows of `t` were never written."""
    with h5py.File(path, "w") as file:
        for name, size in (("y", 10), ("x", 7)):
            file[name] = np.arange(1, size + 1) * 10.0
            file[name].make_scale(name)
        t = file.create_dataset("t", (10, 7), chunks=(3, 2), dtype="f4", compression="gzip", fillvalue=np.float32(-1))
        t[:6] = np.arange(42).reshape(6, 7)
        t.attrs["_FillValue"] = np.float32(-1)
        t.dims[0].attach_scale(file["y"])
        t.dims[1].attach_scale(file["x"])
        file["s"] = np.float64(3.5)


def references():
    """Returns references to the file, and an array of three chunks: two whole objects, and one that is absent."""
    from kerchunk.hdf import SingleHdf5ToZarr

    refs = SingleHdf5ToZarr("data.h5", inline_threshold=0).translate()["refs"]
    refs["y/0"] = "base64:" + base64.b64encode((np.arange(1, 11) * 10.0).tobytes()).decode()
    array = {"shape": [10], "chunks": [4], "dtype": "|u1", "fill_value": 0, "order": "C"}
    array |= {"filters": None, "compressor": None, "zarr_format": 2}
    refs["whole/.zarray"] = json.dumps(array)
    refs["whole/.zattrs"] = json.dumps({"_ARRAY_DIMENSIONS": ["y"]})
    for number in range(2):
        Path(f"whole.{number}").write_bytes(bytes(range(4 * number + 1, 4 * number + 5)))
        refs[f"whole/{number}"] = [f"whole.{number}"]
    return refs


def write(folder, refs, record_size, engine):
    from fsspec.implementations.reference import LazyReferenceMapper

    shutil.rmtree(folder, ignore_errors=True)
    Path(folder).mkdir()
    tables = LazyReferenceMapper.create(folder, record_size=record_size, engine=engine, categorical_threshold=3)
    for key in sorted(refs):
        tables[key] = refs[key]
    tables.flush()


def virtualizarr(folder):
    import kerchunk.df
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr import open_virtual_dataset
    from virtualizarr.parsers import HDFParser

    store = ObjectStoreRegistry({"file://": LocalStore()})
    with open_virtual_dataset(f"file://{HERE}/data.h5", registry=store, parser=HDFParser(), loadable_variables=["x"]) as opened:
        refs = opened.vz.to_kerchunk(format="dict")["refs"]
    refs["s/0"] = refs.pop("s/")  # a table has no row for the name that VirtualiZarr gives it
    for reference in refs.values():
        if isinstance(reference, list):
            reference[0] = "data.h5"
    shutil.rmtree(folder, ignore_errors=True)
    kerchunk.df.refs_to_dataframe(refs, folder, record_size=100)


if __name__ == "__main__":
    os.chdir(HERE)
    data("data.h5")
    write("fastparquet.parq", references(), 5, "fastparquet")
    write("pyarrow.parq", references(), 4, "pyarrow")
    virtualizarr("virtualizarr.parq")
