"""Reads Zarr, NetCDF and HDF5 with xarray, zarr-python and h5py, and writes the cells as CSV.

    t2m.csv:   time,lat,lon,value                     a row per cell, in row-major order
               2024-01-01T00:00:00,-90.0,0.0,271.25   labels of the dimensions, then the value
               2024-01-01T00:00:00,-90.0,60.0,        an empty field is NULL

Text and bytes always have quotes, so that "" is an empty text and not NULL. `expected/NOTES.md` has
all rules.
"""

import itertools
import json
import os
import shutil
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import cftime
import h5netcdf
import h5py
import netCDF4
import numpy as np
import xarray as xr
import zarr

warnings.simplefilter("ignore")

# Calendars whose times SQL can show. Times of other calendars stay the numbers that the file has.
SHARED_CALENDARS = ("standard", "gregorian", "proleptic_gregorian", "noleap", "365_day")
UNITS = {"W": 604_800 * 10**9, "D": 86_400 * 10**9, "h": 3_600 * 10**9, "m": 60 * 10**9}
UNITS |= {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@dataclass
class Table:
    """One variable: a label array (or None) for each dimension, and the values."""

    path: str
    dims: list
    labels: list
    values: np.ndarray
    kind: str
    # Facts for the manifest that the values do not show.
    facts: dict = field(default_factory=dict)
    # Whether the values are integers that xarray made floats to mark the missing ones.
    integral: bool = False
    # The units and the calendar of numbers that count time.
    counted: tuple = None


# ------------------------------------------------------------------------------------------------ readers


class Zarr:
    """A Zarr store or a JSON of references, through zarr-python."""

    def __init__(self, path):
        self.path = str(path)
        self.store = self.references() if self.path.endswith(".json") else self.path
        self.copy = None
        self.root = zarr.open_group(self.store, mode="r")

    def references(self):
        """Resolves references with fsspec. URLs without a scheme are relative to the folder of the JSON."""
        import fsspec

        references = json.loads(Path(self.path).read_text())
        folder = Path(self.path).resolve().parent
        plain = fsspec.filesystem(
            "reference",
            fo=references,
            fs=fsspec.filesystem("dir", path=str(folder), target_protocol="file"),
        )
        store = zarr.storage.MemoryStore()
        from zarr.core.buffer import default_buffer_prototype
        from zarr.core.sync import sync

        for key in plain.references:
            if plain.references[key] is not None:
                data = default_buffer_prototype().buffer.from_bytes(plain.cat_file(key))
                sync(store.set(key, data))
        return store

    def groups(self):
        return [
            "",
            *sorted(
                path for path, node in self.root.members(max_depth=None) if isinstance(node, zarr.Group)
            ),
        ]

    def node(self, group):
        return self.root[group] if group else self.root

    def names(self, group):
        return sorted(self.node(group).array_keys())

    def has_names(self, group, name):
        array = self.node(group)[name]
        if array.metadata.zarr_format == 2:
            return "_ARRAY_DIMENSIONS" in array.attrs
        names = array.metadata.dimension_names
        return array.ndim == 0 or (names is not None and None not in names)

    def dims(self, group, name):
        array = self.node(group)[name]
        names = getattr(array.metadata, "dimension_names", None) or [None] * array.ndim
        return [dim or f"dim_{axis}" for axis, dim in enumerate(names)]

    def raw(self, group, name):
        """Reads an array that xarray refuses for want of names, with the fill value that it hides in version 2."""
        array = self.node(group)[name]
        values, fill = np.asarray(array[...]), array.metadata.fill_value
        hides = array.metadata.zarr_format == 2 and fill is not None and values.dtype.kind in "iufb"
        if not hides or not (values == fill).any():
            return values
        return np.where(values == fill, np.nan if values.dtype.kind == "f" else None, values)

    def open(self, group, **options):
        store = self.store
        if any(not self.has_names(group, name) for name in self.names(group)):
            # xarray refuses the whole group, even if `drop_variables` has the array.
            store = self.without_nameless()
            options["consolidated"] = False
        options["group"] = group or None
        return xr.open_dataset(store, engine="zarr", create_default_indexes=False, **options)

    def without_nameless(self):
        """Copies the store without the arrays that have no names of dimensions."""
        nameless = {
            os.path.join(self.path, group, name)
            for group in self.groups()
            for name in self.names(group)
            if not self.has_names(group, name)
        }
        if self.copy is not None:
            return self.copy.name
        self.copy = tempfile.TemporaryDirectory()

        def leave_out(folder, names):
            return [name for name in names if os.path.join(folder, name) in nameless]

        shutil.copytree(self.path, self.copy.name, ignore=leave_out, dirs_exist_ok=True)
        return self.copy.name

    def enumeration(self, group, name):
        return None


class Netcdf:
    """A NetCDF file, through xarray and netcdf-c; or h5netcdf, where netcdf-c refuses the file or crashes."""

    def __init__(self, path):
        self.path = str(path)
        self.engine = (
            "h5netcdf" if "h5netcdf" in Path(path).name or Path(path).name == "scales.nc" else "netcdf4"
        )
        self.paths, self.variables, self.enums = [], {}, {}
        with h5netcdf.File(self.path) if self.engine == "h5netcdf" else netCDF4.Dataset(self.path) as file:
            self.walk(file, "")

    def walk(self, group, path):
        self.paths.append(path)
        self.variables[path] = sorted(group.variables)
        for name, variable in group.variables.items():
            if self.engine == "netcdf4" and isinstance(variable.datatype, netCDF4.EnumType):
                names = {int(number): text for text, number in variable.datatype.enum_dict.items()}
                self.enums[path, name] = dict(sorted(names.items()))
        for name, child in group.groups.items():
            self.walk(child, f"{path}/{name}".strip("/"))

    def groups(self):
        return self.paths

    def names(self, group):
        return self.variables[group]

    def has_names(self, group, name):
        return True

    def raw(self, group, name):
        raise TypeError(f"xarray cannot read {group}/{name}")

    def open(self, group, **options):
        engine = {"engine": self.engine}
        if group:
            engine["group"] = group
        return xr.open_dataset(self.path, create_default_indexes=False, **engine, **options)

    def enumeration(self, group, name):
        return self.enums.get((group, name))


def hdf5_tables(path):
    """Reads a plain HDF5 file with h5py: only scales name axes, and nothing but h5py's types is decoded."""
    found, unreadable = [], {}

    def visit(group, prefix, seen):
        for name in group:
            link = group.get(name, getlink=True)
            where = f"{prefix}{name}"
            if not isinstance(link, h5py.HardLink):
                unreadable[where] = f"{type(link).__name__}: links are not followed"
                continue
            node = group[name]
            if isinstance(node, h5py.Group):
                # A group can be a member of itself.
                if node.id not in seen:
                    visit(node, f"{where}/", [*seen, node.id])
            elif isinstance(node, h5py.Dataset):
                try:
                    reason = hdf5_unreadable(node)
                    if not reason:
                        found.append(hdf5_table(node, where))
                except (TypeError, ValueError, OSError) as error:
                    # numpy lacks the type, or the HDF5 library lacks a filter.
                    reason = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
                if reason:
                    unreadable[where] = reason

    with h5py.File(path) as file:
        visit(file, "", [file["/"].id])
    return found, unreadable


def hdf5_unreadable(dataset):
    """Returns why no table has these cells; None if one has."""
    dtype = dataset.dtype
    if dataset.shape is None:
        return "null dataspace"
    if dataset.is_virtual:
        return "virtual dataset"
    if h5py.check_ref_dtype(dtype):
        return "references"
    if dtype.kind == "O" and not h5py.check_string_dtype(dtype):
        return "variable-length lists"
    if dtype.names:
        return "compound"
    if dtype.subdtype:
        return "array type"
    if dtype.kind == "V":
        return "opaque"
    return None


def hdf5_values(dataset):
    text = h5py.check_string_dtype(dataset.dtype)
    as_text = text is not None and (text.length is None or text.encoding == "utf-8")
    return np.asarray(dataset.asstr()[...] if as_text else dataset[...])


def hdf5_scale(dataset, axis):
    """Returns the dataset with the labels of an axis; None if the axis has none."""
    scales = dataset.dims[axis]
    if len(scales) == 0 and not (axis == 0 and dataset.is_scale):
        return None
    scale = scales[0] if len(scales) else dataset
    has_labels = not scale.attrs.get("NAME", b"").startswith(b"This is a netCDF dimension but not")
    return scale if has_labels and scale.shape == (dataset.shape[axis],) else None


def hdf5_table(dataset, where):
    values = hdf5_values(dataset)
    names = h5py.check_enum_dtype(dataset.dtype)
    facts = {}
    if names and dataset.dtype.kind != "b":
        facts["enum"] = dict(sorted((int(number), name) for name, number in names.items()))
    dims, labels = [], []
    for axis in range(values.ndim):
        scale = hdf5_scale(dataset, axis)
        dims.append(f"dim_{axis}" if scale is None else scale.name.rpartition("/")[2])
        own = scale is not None and scale.id == dataset.id
        read = None if scale is None else values if own else hdf5_values(scale)
        labels.append(None if read is None else Table(scale.name, dims[-1:], [], read, "dimension"))
    return Table(where, dims, labels, values, "data", facts)


# ------------------------------------------------------------------------------------------------- xarray


def tables_of(path):
    """Returns the tables of a file or store, and the variables that no table has, with reasons."""
    path = Path(path)
    if is_plain_hdf5(path):
        return hdf5_tables(path)
    reader = Zarr(path) if path.suffix in (".zarr", ".json") else Netcdf(path)
    groups = {}
    unreadable = {}
    found = []
    for group in reader.groups():
        groups[group] = read_group(reader, group, unreadable)
    for group, variables in groups.items():
        for table in variables.values():
            table.labels = [
                labels_of(groups, group, dim, length)
                for dim, length in zip(table.dims, table.values.shape, strict=True)
            ]
            found.append(table)
    return found, unreadable


def is_plain_hdf5(path):
    """Whether a file is HDF5 but, by its name, not NetCDF."""
    return path.suffix not in (".nc", ".cdf") and path.is_file() and h5py.is_hdf5(path)


def labels_of(groups, group, dim, length):
    """Returns the values of the coordinate variable of a dimension, from the group or the nearest parent."""
    while True:
        table = groups.get(group, {}).get(dim)
        if table is not None and table.dims == [dim]:
            return table if table.values.shape == (length,) else None
        if not group:
            return None
        group = group.rpartition("/")[0]


def read_group(reader, group, unreadable):
    """Returns the variables of a group by name, without labels."""
    names = reader.names(group)
    nameless = [name for name in names if not reader.has_names(group, name)]
    decoded, raw, undecoded = open_all(reader, group, [name for name in names if name not in nameless])
    found = {}
    for name in names:
        where = f"{group}/{name}".strip("/")
        try:
            if name in nameless:
                values = reader.raw(group, name)
                table = Table(where, reader.dims(group, name), [], np.asarray(values), "data")
            elif name in decoded:
                table = table_of(where, name, decoded[name], raw[name])
            else:
                raise TypeError("xarray cannot decode it")
        except (TypeError, ValueError, KeyError, RuntimeError, OSError) as error:
            unreadable[where] = type(error).__name__ + ": " + str(error).splitlines()[0][:120]
            continue
        if name in undecoded:
            table.facts["undecoded"] = True
            table.values = without_unwritten(table.values)
        names_of_numbers = reader.enumeration(group, name)
        if names_of_numbers:
            table.facts["enum"] = names_of_numbers
        found[name] = table
    return found


def open_all(reader, group, names):
    """Opens a group decoded and undecoded. If xarray refuses it, opens its variables one by one."""
    every = reader.names(group)
    skipped = [name for name in every if name not in names]
    try:
        decoded = reader.open(group, drop_variables=skipped)
        raw = reader.open(group, drop_variables=skipped, decode_times=False, mask_and_scale=False)
        return {name: decoded[name] for name in names}, {name: raw[name] for name in names}, set()
    except Exception:
        pass
    decoded, raw, undecoded = {}, {}, set()
    for name in names:
        others = [other for other in every if other != name]
        # Units such as "months since" stop the decoding of times; the numbers stay.
        for times in (True, False):
            try:
                decoded[name] = reader.open(group, drop_variables=others, decode_times=times)[name]
                raw[name] = reader.open(
                    group, drop_variables=others, decode_times=False, mask_and_scale=False
                )[name]
                if not times:
                    undecoded.add(name)
                break
            except Exception:
                continue
    return decoded, raw, undecoded


def table_of(where, name, decoded, raw):
    values = decoded.values
    stored = raw.values
    encoding = decoded.encoding
    calendar = encoding.get("calendar", "standard").lower()
    is_cftime = values.dtype.kind == "O" and any(isinstance(v, cftime.datetime) for v in values.flat)
    if is_cftime:
        values = stored if calendar not in SHARED_CALENDARS else without_nan(values, stored)
    facts = {"stored": dtype_name(stored)}
    packed = "scale_factor" in encoding or "add_offset" in encoding
    if packed:
        facts["packed"] = True
        # xarray adds it in float32, whose error grows with it.
        offset = abs(float(np.ravel(encoding.get("add_offset", 0))[0]))
        if offset > 1 and decoded.dtype == np.float32:
            facts["offset"] = offset
    kind = "data"
    if decoded.dims == (name,):
        kind = "dimension"
    elif name in decoded.coords:
        kind = "auxiliary"
    integral = stored.dtype.kind in "iu" and values.dtype.kind == "f" and not packed
    if integral:
        values = exact_integers(values, stored)
    # Bounds have those of what they bound.
    units = raw.attrs.get("units", encoding.get("units"))
    counted = (units, calendar) if isinstance(units, str) and " since " in units else None
    if counted and "calendar" in raw.attrs:
        counted = (units, str(raw.attrs["calendar"]).lower())
    return Table(where, list(decoded.dims), [], values, kind, facts, integral, counted)


def without_unwritten(values):
    """Makes times NULL that NetCDF never wrote: xarray refuses to decode them."""
    unwritten = netCDF4.default_fillvals.get(values.dtype.str[1:])
    return np.where(values == unwritten, np.nan, values) if values.dtype.kind == "f" else values


def without_nan(values, stored):
    """Makes times NULL whose number is NaN: xarray shows the reference time where it uses cftime."""
    return np.where(np.isnan(stored), None, values) if stored.dtype.kind == "f" else values


def exact_integers(values, stored):
    """Replaces floats that are too large to be exact by the integers which xarray reads undecoded."""
    exact = values.astype(object)
    for place in np.ndindex(values.shape):
        value = values[place]
        if np.isfinite(value):
            as_stored = int(stored[place])
            is_large = abs(int(value)) >= (2**24 if values.dtype.itemsize == 4 else 2**53)
            # `_Unsigned` makes a negative number a large one; that one is the float's.
            same_sign = (as_stored < 0) == (value < 0)
            exact[place] = as_stored if is_large and same_sign else int(value)
    return exact


# ---------------------------------------------------------------------------------------------------- CSV


def dtype_name(values):
    values = np.asarray(values)
    kind = values.dtype.kind
    if kind == "O":
        present = [v for v in values.flat if not is_null(v)]
        if any(isinstance(v, cftime.datetime) for v in present):
            return "datetime"
        if any(isinstance(v, (bool, np.bool_)) for v in present):
            return "bool"
        if any(isinstance(v, bytes) for v in present):
            return "bytes"
        if any(isinstance(v, (int, np.integer)) for v in present):
            return "integer"
        return "string"
    return {
        "T": "string",
        "U": "string",
        "S": "bytes",
        "V": "bytes",
        "M": "datetime",
        "m": "timedelta",
    }.get(kind, values.dtype.name)


def is_null(value):
    if value is None:
        return True
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    # pandas has missing values of its own.
    return type(value).__name__ in ("NaTType", "NAType")


def time_text(value):
    """Writes a time without a zone, with 0, 6 or 9 digits after the second: as many as it needs."""
    unit, step = np.datetime_data(value.dtype)
    if unit in ("Y", "M"):
        value, unit, step = value.astype("M8[D]"), "D", 1
    fraction = int(value.astype("i8")) * step * UNITS[unit] % 10**9
    whole = str(value.astype("M8[s]"))
    if fraction == 0:
        return whole
    return f"{whole}.{fraction // 1000:06}" if fraction % 1000 == 0 else f"{whole}.{fraction:09}"


def cell_text(value):
    """Writes a value, or a label."""
    if is_null(value):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (np.datetime64,)):
        return time_text(value)
    if isinstance(value, np.timedelta64):
        unit, step = np.datetime_data(value.dtype)
        return str(int(value.astype("i8")) * step * UNITS[unit])
    if isinstance(value, cftime.datetime):
        # SQL has all dates of the calendars whose times are shown, but for a few Julian ones.
        digits = f".{value.microsecond:06}" if value.microsecond else ""
        return value.strftime("%Y-%m-%dT%H:%M:%S").strip().rjust(19, "0") + digits
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, np.float16):
        return str(np.float32(value))
    if isinstance(value, (float, np.floating)):
        return str(value)
    if isinstance(value, str):
        return '"' + str(value).replace('"', '""') + '"'
    if isinstance(value, bytes):
        return f'"{value.hex()}"'
    if isinstance(value, np.void):
        return f'"{value.tobytes().hex()}"'
    raise TypeError(f"no text for {type(value).__name__} {value!r}")


def cells(values):
    """Yields the values as scalars of numpy where there are such, in row-major order."""
    for place in np.ndindex(values.shape):
        yield values[place]


def value_columns(table):
    return ["value_re", "value_im"] if table.values.dtype.kind == "c" else ["value"]


def lines_of(table, every=1):
    """Returns the lines of a table's CSV: the header, and a cell of each `every` in row-major order."""
    columns = []
    for label, length in zip(table.labels, table.values.shape, strict=True):
        columns.append(
            [str(i) for i in range(length)]
            if label is None
            else [cell_text(v) for v in cells(label.values)]
        )
    header = ",".join(quoted(name) for name in unique(table.dims) + value_columns(table))
    lines = [header]
    for place in itertools.islice(np.ndindex(table.values.shape), 0, None, every):
        value = table.values[place]
        texts = (
            [cell_text(value.real), cell_text(value.imag)]
            if table.values.dtype.kind == "c"
            else [cell_text(value)]
        )
        lines.append(",".join([column[i] for column, i in zip(columns, place, strict=True)] + texts))
    return lines


def quoted(name):
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',"\n') else name


def unique(dims):
    """Names the second axis of `x, x` by its place, as in `x, x_1`."""
    names = []
    for axis, dim in enumerate(dims):
        names.append(f"{dim}_{axis}" if dim in names else dim)
    return names


def step_of(count, limit):
    """Returns the least step without small factors, which sizes have, that leaves no more cells than the limit."""
    step = -(-count // limit)
    while step > 1 and any(step % factor == 0 for factor in (2, 3, 5, 7)):
        step += 1
    return max(step, 1)


def write_expected(folder, file, path, limit=None):
    """Writes the CSVs of a file or store into `folder/expected`, and returns its entries in the manifest.

    Tables with more cells than the limit have a sample.
    """
    found, unreadable = tables_of(path)
    entries = []
    for table in found:
        csv = f"expected/{file}/{table.path.replace('/', '__')}.csv"
        target = Path(folder) / csv
        os.makedirs(target.parent, exist_ok=True)
        every = step_of(table.values.size, limit) if limit else 1
        lines = lines_of(table, every)
        target.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
        entry = {"file": file, "table": table.path, "csv": csv, "dims": table.dims}
        if every > 1:
            entry["every"] = every
        entry["dtype"] = "integer" if table.integral else dtype_name(table.values)
        labels = [None if label is None else dtype_name(label.values) for label in table.labels]
        if any(labels):
            entry["labels"] = labels
        if table.kind != "data":
            entry["kind"] = table.kind
        entry |= {
            key: fact for key, fact in table.facts.items() if key != "stored" or fact != entry["dtype"]
        }
        entries.append(entry)
    for where, reason in sorted(unreadable.items()):
        entries.append({"file": file, "table": where, "unreadable": reason})
    return entries


def write_manifest(path, entries):
    """Writes a JSON list with an entry per line, so that changes are easy to see."""
    lines = [json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries]
    Path(path).write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8", newline="\n")
