"""Writes and reads cells of sparse TileDB arrays, with the buffers and the JSON of cells.py.

Dimensions and attributes are both fields here, because a sparse cell stores its coordinates.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import tiledb
import tiledb.libtiledb as lt
from tiledb.main import PyQuery

from cells import element, encode, json_cell, json_metadata

# Small arrays are read faster without a pool of threads and large buffers.
SMALL = {"sm.compute_concurrency_level": "1", "sm.io_concurrency_level": "1",
         "py.init_buffer_bytes": "100000"}


def settings(key, **more):
    """The configuration for arrays encrypted with `key`."""
    secret = {} if key is None else {"sm.encryption_type": "AES_256_GCM", "sm.encryption_key": key}
    return SMALL | secret | more


@cache
def context(key):
    return tiledb.Ctx(settings(key))


@dataclass
class Field:
    """A dimension or an attribute. `encode` and `json_cell` take it for an attribute of TileDB-Py."""

    name: str
    internal_name: str
    is_dimension: bool
    _tiledb_dtype: object
    isvar: bool
    ncells: int
    isnullable: bool = False
    enum: str | None = None
    labels: list | None = None
    # DOUBLE_DELTA refuses large differences.
    is_tame: bool = False

    @property
    def kind(self):
        return self._tiledb_dtype.name


def fields_of(array):
    """The dimensions, and then the attributes, of the schema that the open array uses."""
    schema = array.schema
    fields = []
    for dim in (schema.domain.dim(i) for i in range(schema.domain.ndim)):
        is_text = dim._tiledb_dtype.name == "STRING_ASCII"
        fields.append(Field(dim.name, dim.name, True, dim._tiledb_dtype, is_text, 1))
    for attr in (schema.attr(i) for i in range(schema.nattr)):
        is_tame = any(isinstance(step, tiledb.DoubleDeltaFilter) for step in attr.filters)
        labels = attr.enum_label and json_metadata(list(array.enum(attr.enum_label).values()))
        fields.append(Field(attr.name, attr._internal_name, False, attr._tiledb_dtype, attr.isvar,
                            1 if attr.isvar else attr.ncells, attr.isnullable, attr.enum_label,
                            labels, is_tame))
    return fields


def open_array(uri, mode="r", timestamp=None, key=None):
    return tiledb.open(str(uri), mode, timestamp=timestamp, ctx=context(key))


def write_cells(array, columns):
    """Writes one fragment: a list of values per field, in any order of cells."""
    query = lt.Query(lt.Context(array.ctx), array.array, lt.QueryType.WRITE)
    query.layout = lt.LayoutType.UNORDERED
    kept = []  # the query only borrows its buffers
    for field_, values in columns:
        data, starts, validity = encode(field_, values)
        kept.append((data, starts, validity))
        query.set_data_buffer(field_.name, data, np.uint64(len(data)))
        if field_.isvar:
            query.set_offsets_buffer(field_.name, starts, np.uint64(len(starts)))
        if field_.isnullable:
            query.set_validity_buffer(field_.name, validity, np.uint64(len(validity)))
    query._submit()
    query.finalize()


def cells_of(field_, result):
    """The cells of a field as JSON, from the buffers that libtiledb filled."""
    data, starts, validity = result
    raw = data.tobytes()
    if field_.isvar:
        starts = [*starts.tolist(), len(raw)]
    else:
        size = element(field_.kind).itemsize * field_.ncells
        starts = range(0, len(raw) + 1, size)
    cells = [json_cell(field_, raw[a:b]) for a, b in zip(starts, starts[1:])]
    if field_.isnullable:
        cells = [cell if valid else None for cell, valid in zip(cells, validity)]
    if field_.labels is not None:
        count = len(field_.labels)
        cells = [field_.labels[key] if key is not None and 0 <= key < count else None
                 for key in cells]
    return cells


def read_rows(array):
    """The columns as [name, type] and the rows as lists of cells, in the order of libtiledb."""
    fields = fields_of(array)
    attributes = tuple(f.internal_name for f in fields if not f.is_dimension)
    dimensions = tuple(f.name for f in fields if f.is_dimension)
    # With duplicates and UNORDERED, libtiledb 2.30 crashes if a fragment lacks a nullable attribute.
    query = PyQuery(array.ctx, array, attributes, dimensions, lt.LayoutType.GLOBAL_ORDER, False)
    query.submit()
    results = query.results()
    columns = [cells_of(f, results[f.internal_name]) for f in fields]
    # A label hides the integer type of its key.
    kinds = [[f.name, "" if f.labels is not None else f.kind] for f in fields]
    return kinds, [list(row) for row in zip(*columns)]
