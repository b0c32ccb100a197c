"""Writes cells of dense TileDB arrays from Python values, and reads them as expected JSON.

Both use libtiledb's own buffers (data, offsets, validity), because the friendlier calls of TileDB-Py
drop nulls in some places and trim strings in others. `describe` returns the cells that libtiledb
returned; README.md describes their encoding.
"""

import time

import numpy as np
import tiledb
import tiledb.libtiledb as lt
from tiledb import Dim
from tiledb.main import PyQuery

KEY = "0123456789abcdef0123456789ABCDEF"

NUMPY_TYPES = {
    "INT8": "i1", "UINT8": "u1", "INT16": "i2", "UINT16": "u2", "INT32": "i4", "UINT32": "u4",
    "INT64": "i8", "UINT64": "u8", "FLOAT32": "f4", "FLOAT64": "f8", "BOOL": "u1",
}
TEXT = ("STRING_ASCII", "STRING_UTF8")
BYTES = ("CHAR", "BLOB", "GEOM_WKB", "GEOM_WKT")
ROW_MAJOR = "row-major over subarray (inclusive bounds)"


def context(key=None):
    """A context that reads and writes arrays encrypted with `key`."""
    if key is None:
        return tiledb.Ctx()
    return tiledb.Ctx({"sm.encryption_type": "AES_256_GCM", "sm.encryption_key": key})


def dim(low, high, tile, name="x", dtype="i4"):
    return Dim(name, domain=(low, high), tile=tile, dtype=dtype)


def dates(low, high, tile, unit, name):
    bounds = tuple(np.datetime64(bound, unit) for bound in (low, high))
    return Dim(name, domain=bounds, tile=np.timedelta64(tile, unit), dtype=f"M8[{unit}]")


def create(uri, dims, attrs, key=None, **options):
    """Creates an array. Waits, because later schema files must have a later time in their names."""
    schema = tiledb.ArraySchema(tiledb.Domain(*dims), attrs, ctx=context(key), **options)
    tiledb.Array.create(str(uri), schema, key=key, ctx=context(key))
    time.sleep(0.003)


def element(type_name):
    """The numpy type of one value: dates and times are 64-bit, text and bytes are bytes."""
    if type_name.startswith(("DATETIME_", "TIME_")):
        return np.dtype("i8")
    return np.dtype(NUMPY_TYPES.get(type_name, "u1"))


def encode(attr, cells):
    """The data, offsets and validity buffers of Python values; None is null."""
    type_ = element(attr._tiledb_dtype.name)
    size = type_.itemsize * (1 if attr.isvar else attr.ncells)

    def cell_bytes(cell):
        if cell is None:
            return b"" if attr.isvar else bytes(size)
        if isinstance(cell, (str, bytes)):
            raw = cell.encode() if isinstance(cell, str) else cell
            return raw if attr.isvar else raw.ljust(size, b"\0")
        return np.array(cell, dtype=type_).tobytes()

    parts = [cell_bytes(cell) for cell in cells]
    starts = np.cumsum([0] + [len(part) for part in parts])[:-1].astype("u8")
    data = np.frombuffer(b"".join(parts), dtype=type_)
    return data, starts, np.array([cell is not None for cell in cells], dtype="u1")


def write(uri, box, columns, timestamp=10, key=None):
    """Writes one fragment: the cells of `box` (inclusive), row-major. Without timestamp: now."""
    with tiledb.open(str(uri), "w", timestamp=timestamp, ctx=context(key)) as array:
        query = lt.Query(lt.Context(array.ctx), array.array, lt.QueryType.WRITE)
        query.layout = lt.LayoutType.ROW_MAJOR
        query.set_subarray(subarray_of(array, box))
        kept = []  # the query only borrows its buffers
        for name, cells in columns.items():
            attr = array.schema.attr(name)
            data, starts, validity = encode(attr, list(cells))
            kept.append((data, starts, validity))
            query.set_data_buffer(name, data, np.uint64(len(data)))
            if attr.isvar:
                query.set_offsets_buffer(name, starts, np.uint64(len(starts)))
            if attr.isnullable:
                query.set_validity_buffer(name, validity, np.uint64(len(validity)))
        query._submit()
        query.finalize()


def subarray_of(array, box):
    domain = array.schema.domain
    subarray = tiledb.Subarray(array)
    for number, (low, high) in enumerate(box):
        type_ = domain.dim(number).dtype
        bounds = [np.array(bound, dtype="i8").view(type_)[()] if type_.kind == "M"
                  else type_.type(bound) for bound in (low, high)]
        subarray.add_dim_range(number, tuple(bounds))
    return subarray


def json_value(type_name, value):
    if type_name == "BOOL":
        return bool(value)
    if type_name.startswith("FLOAT"):
        return "NaN" if np.isnan(value) else repr(float(value))
    return int(value)


def json_cell(attr, raw):
    """One cell, encoded as README.md describes."""
    type_name = attr._tiledb_dtype.name
    if type_name in TEXT:
        return raw.decode()
    if type_name in BYTES:
        return {"hex": raw.hex()}
    values = [json_value(type_name, v) for v in np.frombuffer(raw, dtype=element(type_name))]
    return values if attr.isvar or attr.ncells > 1 else values[0]


def read(array, box):
    """All attributes over `box`, row-major."""
    attrs = [array.schema.attr(i) for i in range(array.schema.nattr)]
    names = tuple(attr._internal_name for attr in attrs)
    query = PyQuery(array.ctx, array, names, (), lt.LayoutType.ROW_MAJOR, False)
    query.set_subarray(subarray_of(array, box))
    query.submit()
    results = query.results()
    columns = {}
    for attr, name in zip(attrs, names):
        data, starts, validity = results[name]
        raw = data.tobytes()
        if attr.isvar:
            starts = [*starts.tolist(), len(raw)]
        else:
            size = element(attr._tiledb_dtype.name).itemsize * attr.ncells
            starts = range(0, len(raw) + 1, size)
        cells = [json_cell(attr, raw[a:b]) for a, b in zip(starts, starts[1:])]
        if attr.isnullable:
            cells = [cell if valid else None for cell, valid in zip(cells, validity)]
        columns[attr.name] = cells
    return columns


def raw_int(bound):
    is_time = isinstance(bound, (np.datetime64, np.timedelta64))
    return int(bound.astype("i8")) if is_time else int(bound)


def ranges(pairs):
    return [[raw_int(low), raw_int(high)] for low, high in pairs]


def order(name):
    return {"C": "row-major", "F": "col-major"}.get(name, name)


def filters(pipeline):
    return [repr(step) for step in pipeline]


def describe_schema(schema):
    domain = schema.domain
    dims = [domain.dim(i) for i in range(domain.ndim)]
    attrs = [schema.attr(i) for i in range(schema.nattr)]
    return {
        "version": schema.version,
        "sparse": schema.sparse,
        "cell_order": order(schema.cell_order),
        "tile_order": order(schema.tile_order),
        "capacity": schema.capacity,
        "allows_duplicates": schema.sparse and schema.allows_duplicates,
        "coords_filters": filters(schema.coords_filters),
        "offsets_filters": filters(schema.offsets_filters),
        "validity_filters": filters(schema.validity_filters),
        "dims": [{
            "name": dim.name,
            "type": dim._tiledb_dtype.name,
            "domain": ranges([dim.domain])[0],
            "tile": raw_int(dim.tile),
            "filters": filters(dim.filters),
        } for dim in dims],
        "attrs": [{
            "name": attr.name,
            "type": attr._tiledb_dtype.name,
            "var": attr.isvar,
            "nullable": attr.isnullable,
            "values_per_cell": "var" if attr.isvar else attr.ncells,
            "enum": attr.enum_label,
            "filters": filters(attr.filters),
        } for attr in attrs],
    }


def describe_read(array, timestamp, box):
    schema = array.schema
    if box is None:
        domain = schema.domain
        box = ranges(domain.dim(i).domain for i in range(domain.ndim))
    written = array.nonempty_domain()
    columns = read(array, box)
    shape = [high - low + 1 for low, high in box]
    return {
        "timestamp": list(timestamp) if isinstance(timestamp, tuple) else timestamp,
        "nonempty_domain": None if written is None else ranges(written),
        "subarray": box,
        "shape": shape,
        "order": ROW_MAJOR,
        "rows": int(np.prod(shape)),
        "columns": columns,
    }


def describe(uri, name, what, timestamps=(None,), boxes=(None,), key=None, **extra):
    """The expected JSON of an array: its schema, and its cells as of each timestamp."""
    reads = []
    for timestamp in timestamps:
        with tiledb.open(str(uri), timestamp=timestamp, ctx=context(key)) as array:
            reads += [describe_read(array, timestamp, box) for box in boxes]
    with tiledb.open(str(uri), ctx=context(key)) as array:
        schema = describe_schema(array.schema)
        extra |= enumerations(array)
    return {"name": name, "what": what, "schema": schema, "reads": reads, **extra}


def enumerations(array):
    labels = (array.schema.attr(i).enum_label for i in range(array.schema.nattr))
    used = [array.enum(label) for label in dict.fromkeys(labels) if label]
    if not used:
        return {}
    found = {enum.name: {"ordered": enum.ordered, "values": json_metadata(list(enum.values()))}
             for enum in used}
    return {"enumerations": found, "note": "columns hold the raw integer keys"}


def json_metadata(value):
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, (tuple, list, np.ndarray)):
        return [json_metadata(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value
