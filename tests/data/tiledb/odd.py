"""Makes arrays in `odd` that are legal and rare; tests/it/tiledb/odd.rs has what they hold.

    extent_i8, extent_i64, extent_ns   no tile extent over more than half of the type: the stored extent wraps
    widest                             a dense domain of 2^63 - 10001 coordinates, of which five are written
    widest_i8, widest_u8, widest_ns    the same of two signed dimensions, three unsigned ones, and two of times
    widest_sparse                      a sparse array over two such domains, with five cells
    enumerations                       one that is not UTF-8 (`b`), one with NaN (`f`), and plain numbers (`v`)
    old_group                          a group as TileDB wrote them before 2.8: a mark, and no list of members
"""

import shutil

import numpy as np
import tiledb
from tiledb import Attr, Dim, Domain


def sparse(uri, domain, dtype):
    # A dimension without `tile` gets the whole domain as its extent.
    schema = tiledb.ArraySchema(
        Domain(Dim("x", domain=domain, dtype=dtype)), [Attr("a", dtype="i4")], sparse=True)
    tiledb.Array.create(str(uri), schema)
    with tiledb.open(str(uri), "w", timestamp=10) as array:
        array[np.array([-100, 5, 100], "i8").astype(dtype)] = np.array([10, 20, 30], "i4")


def widest(uri):
    dim = Dim("x", domain=(0, 2**63 - 10002), tile=10000, dtype="i8")
    tiledb.Array.create(str(uri), tiledb.ArraySchema(Domain(dim), [Attr("a", dtype="i4")]))
    with tiledb.open(str(uri), "w", timestamp=10) as array:
        array[100:105] = np.arange(5, dtype="i4")


def widest_box(array, firsts, lens):
    """Writes the numbers from 0 into a box whose least corner is `firsts`."""
    subarray = tiledb.Subarray(array)
    for number, (first, length) in enumerate(zip(firsts, lens)):
        subarray.add_dim_range(number, (first, first + (length - 1)))
    array.write_subarray(subarray, np.arange(np.prod(lens), dtype="i4").reshape(lens))


def widest_of(uri, dtype, domain, tiles, boxes):
    """Makes a dense array with the same domain on each dimension, and writes boxes into it."""
    dims = [Dim("xyz"[number], domain=domain, tile=tile, dtype=dtype) for number, tile in enumerate(tiles)]
    tiledb.Array.create(str(uri), tiledb.ArraySchema(Domain(*dims), [Attr("a", dtype="i4")]))
    for number, (firsts, lens) in enumerate(boxes):
        with tiledb.open(str(uri), "w", timestamp=10 * (number + 1)) as array:
            widest_box(array, firsts, lens)


def widest_sparse(uri):
    domain = Domain(Dim("x", domain=(-(2**62), 2**63 - 1002), tile=10, dtype="i8"),
                    Dim("y", domain=(0, 2**64 - 1002), tile=4, dtype="u8"))
    tiledb.Array.create(str(uri), tiledb.ArraySchema(domain, [Attr("a", dtype="i4")], sparse=True))
    with tiledb.open(str(uri), "w", timestamp=10) as array:
        xs, ys = [-(2**62), -1, 0, 7, 2**63 - 1002], [2**64 - 1002, 3, 2**63, 0, 1]
        array[np.array(xs, "i8"), np.array(ys, "u8")] = np.arange(5, dtype="i4")


def enumerations(uri):
    dim = Dim("i", domain=(0, 3), tile=4, dtype="i4")
    lists = [tiledb.Enumeration("bytes", False, [b"\xff\xfe", b"a"]),
             tiledb.Enumeration("floats", False, np.array([0.5, np.nan]))]
    attrs = [Attr("b", dtype="i1", enum_label="bytes"), Attr("f", dtype="i1", enum_label="floats"),
             Attr("v", dtype="f8")]
    tiledb.Array.create(str(uri), tiledb.ArraySchema(Domain(dim), attrs, enums=lists))
    with tiledb.open(str(uri), "w", timestamp=10) as array:
        array[:] = {"b": np.array([1, 1, 0, 1], "i1"), "f": np.array([0, 1, 0, 1], "i1"), "v": np.arange(4.0)}


def odd(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    sparse(folder / "extent_i8", (-128, 126), "i1")
    sparse(folder / "extent_i64", (-(2**63), 2**63 - 2), "i8")
    sparse(folder / "extent_ns", (np.datetime64("1700-01-01", "ns"), np.datetime64("2200-01-01", "ns")), "M8[ns]")
    widest(folder / "widest")
    # The box around both fragments has more than 2^64 cells too.
    widest_of(folder / "widest_i8", "i8", (-(2**62), 2**63 - 1002), (10, 4),
              [((-3, 2**62), (3, 2)), ((2**62, 5), (1, 1))])
    widest_of(folder / "widest_u8", "u8", (0, 2**64 - 1002), (2, 5, 3), [((7, 2**63, 2**64 - 1005), (2, 2, 3))])
    widest_of(folder / "widest_ns", "M8[ns]", (np.datetime64("1700-01-01", "ns"), np.datetime64("2250-01-01", "ns")),
              (np.timedelta64(2, "ns"), np.timedelta64(3, "ns")),
              [((np.datetime64("1999-12-31T23:59:59.999999999", "ns"), np.datetime64("1970-01-01", "ns")), (2, 2))])
    widest_sparse(folder / "widest_sparse")
    enumerations(folder / "enumerations")
    (folder / "old_group" / "inner").mkdir(parents=True)
    for group in (folder / "old_group", folder / "old_group" / "inner"):
        (group / "__tiledb_group.tdb").write_bytes(b"")
    shutil.copytree(folder / "extent_i8", folder / "old_group" / "first")
    shutil.copytree(folder / "extent_i8", folder / "old_group" / "inner" / "second")
