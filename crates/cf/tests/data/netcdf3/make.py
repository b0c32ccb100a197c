"""Writes the NetCDF classic files of the tests, and what netCDF4 reads from them.

    python make.py [FOLDER]

Needs netCDF4 and scipy. `expected.json` holds, for each file and variable, the shape, the type and the
little-endian bytes as netCDF4 reads them, without masks or scales. Files are the same on every run.
"""

import json
import pathlib
import sys

import netCDF4
import numpy
from scipy.io import netcdf_file

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
FOLDER = FOLDER if FOLDER.is_dir() else FOLDER.parent
FORMATS = {1: "NETCDF3_CLASSIC", 2: "NETCDF3_64BIT_OFFSET", 5: "NETCDF3_64BIT_DATA"}
CLASSIC = ["i1", "S1", "i2", "i4", "f4", "f8"]
OF_CDF5 = ["u1", "u2", "u4", "i8", "u8"]


def cells(kind, shape, seed):
    """Makes values that use all bytes of their words."""
    count = int(numpy.prod(shape))
    if kind == "S1":
        return numpy.frombuffer(bytes(97 + (7 * at + seed) % 26 for at in range(count)), "S1").reshape(shape)
    if kind[0] == "f":
        return (numpy.arange(count) * -1.37 + seed + 0.1).astype(kind).reshape(shape)
    width = numpy.dtype(kind).itemsize
    pattern = bytes((at * 37 + seed * 11) % 256 for at in range(count * width))
    return numpy.frombuffer(pattern, kind).reshape(shape)


def create(name, version):
    return netCDF4.Dataset(FOLDER / f"{name}.nc", "w", format=FORMATS[version])


def all_types(version):
    """Every type as a scalar, as a fixed variable and as a record variable."""
    with create(f"cdf{version}", version) as file:
        file.title = "Höhe über Meer"
        file.numbers = numpy.array([1, -2, 3], "i2")
        file.real = numpy.float32(0.1)
        file.double = 0.1
        file.createDimension("time", None)
        file.createDimension("x", 5)
        kinds = CLASSIC + (OF_CDF5 if version == 5 else [])
        for seed, kind in enumerate(kinds):
            scalar = file.createVariable(f"{kind}_scalar", kind, ())
            scalar[...] = cells(kind, (), seed)
            fixed = file.createVariable(f"{kind}_fixed", kind, ("x",))
            fixed[:] = cells(kind, (5,), seed)
            records = file.createVariable(f"{kind}_records", kind, ("time", "x"))
            records.units = "m"
            records[:] = cells(kind, (3, 5), seed)
            times = file.createVariable(f"{kind}_times", kind, ("time",))
            times[:] = cells(kind, (3,), seed)


def only_records(name, kind):
    """A single record variable, whose records have no padding."""
    with create(name, 1) as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        fixed = file.createVariable("fixed", "i1", ("x",))
        fixed[:] = cells("i1", (3,), 1)
        records = file.createVariable("records", kind, ("time", "x"))
        records[:] = cells(kind, (7, 3), 2)


def no_records():
    with create("no_records", 1) as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createVariable("time", "f8", ("time",))
        file.createVariable("v", "i2", ("time", "x"))
        file.createVariable("x", "i4", ("x",))[:] = [1, 2, 3]


def fills():
    """Cells that were never written, with default and declared fill values."""
    with create("fills", 5) as file:
        file.createDimension("time", None)
        file.createDimension("x", 4)
        for kind in CLASSIC + OF_CDF5:
            variable = file.createVariable(f"{kind}_default", kind, ("time", "x"))
            if kind == "i1":
                # Fills two records of all variables.
                variable[1, 0] = 5
        declared = file.createVariable("declared", "i2", ("time", "x"), fill_value=-999)
        declared.valid_range = numpy.array([0, 10], "i2")


def texts():
    with create("texts", 2) as file:
        file.createDimension("time", None)
        file.createDimension("station", 3)
        file.createDimension("len", 9)
        names = file.createVariable("name", "S1", ("station", "len"))
        names._Encoding = "utf-8"
        names[:] = numpy.array(["Zürich", "Oslo", "København"])
        one = file.createVariable("title", "S1", ("len",))
        one[:4] = numpy.frombuffer(b"abcd", "S1")
        notes = file.createVariable("note", "S1", ("time", "len"))
        notes[0, :] = cells("S1", (9,), 3)
        notes[1, :2] = numpy.frombuffer(b"ok", "S1")


def by_scipy():
    for version in (1, 2):
        with netcdf_file(FOLDER / f"scipy{version}.nc", "w", version=version) as file:
            file.history = "by SciPy"
            file.createDimension("time", None)
            file.createDimension("x", 5)
            for kind in ["i1", "i2", "i4", "f4", "f8"]:
                file.createVariable(f"{kind}_fixed", kind, ("x",))[:] = cells(kind, (5,), 1).astype(kind)
                file.createVariable(f"{kind}_records", kind, ("time", "x"))[:] = cells(kind, (3, 5), 2)


def overlapping():
    """SciPy places scalars behind the first record, in the midst of the second."""
    with netcdf_file(FOLDER / "overlapping.nc", "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 5)
        file.createVariable("records", "f4", ("time", "x"))[:] = cells("f4", (3, 5), 1)
        file.createVariable("height", "f8", ())[...] = 2.0


def described(path):
    """Returns what netCDF4 reads; nothing if it refuses the file."""
    try:
        file = netCDF4.Dataset(path)
    except OSError:
        return None
    with file:
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        variables = {}
        for name, variable in file.variables.items():
            values = numpy.asarray(variable[...])
            little = values.astype(values.dtype.newbyteorder("<"))
            kind = little.dtype.str.lstrip("<|")
            variables[name] = [list(variable.shape), kind, little.tobytes().hex()]
        return variables


def main():
    for version in FORMATS:
        all_types(version)
    for name, kind in [("only_bytes", "i1"), ("only_chars", "S1"), ("only_shorts", "i2")]:
        only_records(name, kind)
    no_records()
    fills()
    texts()
    by_scipy()
    overlapping()
    expected = {path.name: described(path) for path in sorted(FOLDER.glob("*.nc"))}
    lines = [f" {json.dumps(name)}: {json.dumps(variables)}" for name, variables in expected.items()]
    (FOLDER / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
