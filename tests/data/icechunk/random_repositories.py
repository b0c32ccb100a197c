"""Makes random repositories, and what each of their versions holds.

    python random_repositories.py FOLDER COUNT [SEED] [SPEC]

Each folder has `repository`, and `expected.json` with the cells of every snapshot as the library reads them. A test reads
them all: see `crates/zarr/src/icechunk/tests/random.rs`.
"""

import json
import os
import random
import sys
from datetime import UTC, datetime

import icechunk
import numpy
import zarr

from make import values

# Version 2.3 of the library compares tags of local files with quotes, and never finds them equal.
TAG = icechunk.__version__.startswith("1.")
TYPES = ["int8", "uint16", "int32", "int64", "float32", "float64", "str"]


def cells_of(rng, shape, dtype):
    count = int(numpy.prod(shape, dtype="int64"))
    if dtype == "str":
        words = ["", "a", "Zürich", "x" * 30]
        return numpy.array([rng.choice(words) for _ in range(count)], dtype=object).reshape(shape)
    if dtype.startswith("float"):
        return numpy.array([rng.randint(-999, 999) / 8 for _ in range(count)], dtype=dtype).reshape(shape)
    return numpy.array([rng.randint(0, 100) for _ in range(count)], dtype=dtype).reshape(shape)


def config_of(rng, raw_prefix, version):
    config = icechunk.RepositoryConfig.default()
    config.inline_chunk_threshold_bytes = rng.choice([0, 16, 64, 512])
    more = {}
    if rng.random() < 0.7:
        sizes = {
            rng.choice(
                [icechunk.ManifestSplitDimCondition.Any(), icechunk.ManifestSplitDimCondition.Axis(0)]
            ): rng.choice([1, 2, 3])
        }
        if rng.random() < 0.5:
            sizes = {icechunk.ManifestSplitDimCondition.Axis(1): 2, **sizes}
        more["splitting"] = icechunk.ManifestSplittingConfig.from_dict(
            {icechunk.ManifestSplitCondition.AnyArray(): sizes}
        )
    if version == 2 and rng.random() < 0.5:
        more["virtual_chunk_location_compression"] = icechunk.ManifestVirtualChunkLocationCompressionConfig(
            min_num_chunks=2
        )
    config.manifest = icechunk.ManifestConfig(**more)
    named = {} if version == 1 else {"name": "raw"}
    store = icechunk.local_filesystem_store(raw_prefix.removeprefix("file://"))
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(raw_prefix, store, **named))
    return config


def new_array(rng, group, name):
    rank = rng.choice([0, 1, 1, 2, 2, 3, 4])
    most = [0, 30, 12, 7, 4][rank]
    shape = tuple(rng.randint(0 if rng.random() < 0.1 else 1, most) for _ in range(rank))
    chunks = tuple(rng.randint(1, max(1, length)) for length in shape)
    dtype = rng.choice(TYPES)
    more = {}
    if rank and dtype != "str" and rng.random() < 0.25:
        more["shards"] = tuple(chunk * rng.randint(1, 3) for chunk in chunks)
    if dtype != "str" and rng.random() < 0.5:
        more["fill_value"] = rng.randint(0, 9)
    if rng.random() < 0.3:
        more["compressors"] = None
    if rank and rng.random() < 0.6:
        more["dimension_names"] = [f"{name}_{axis}" for axis in range(rank)]
    return group.create_array(name, shape=shape, chunks=chunks if rank else "auto", dtype=dtype, **more)


def new_virtual(rng, store, group, path, raw, vcc):
    """Makes an array whose chunks are in a file of the integers from 0 on."""
    length, width = rng.randint(1, 9), rng.randint(1, 4)
    group.create_array(
        path.rpartition("/")[2], shape=(length, width), chunks=(1, width), dtype="<i4",
        compressors=None, filters=None, fill_value=-1,
    )
    for at in range(length):
        if rng.random() < 0.8:
            location = vcc if vcc and rng.random() < 0.5 else raw
            checksum = rng.choice([None, tag_of(raw) if TAG else None, datetime(2100, 1, 1, tzinfo=UTC)])
            offset = 4 * rng.randint(0, 90)
            store.set_virtual_ref(f"{path}/c/{at}/0", location, offset=offset, length=4 * width, checksum=checksum)


def tag_of(url):
    """Returns the tag of a local file, as the crate `object_store` makes it."""
    facts = os.stat(url.removeprefix("file://"))
    return f"{facts.st_ino:x}-{facts.st_mtime_ns // 1000:x}-{facts.st_size:x}"


def box(rng, shape):
    def edge(length):
        start = rng.randint(0, length - 1)
        return slice(start, rng.randint(start + 1, length))

    return tuple(edge(length) for length in shape)


def change(rng, session, raw, vcc, names):
    """Changes some arrays in a session."""
    store = session.store
    root = zarr.open_group(store, zarr_format=3)
    for _ in range(rng.randint(1, 4)):
        arrays = [path for path, node in root.members(max_depth=None) if isinstance(node, zarr.Array)]
        what = rng.choice(["new", "write", "write", "write", "resize", "append", "delete chunks", "delete", "virtual"])
        if what in ("new", "virtual") or not arrays:
            inner = rng.choice(["", "", "g", "g/h"])
            group = root.require_group(inner) if inner else root
            names.append(f"a{len(names)}")
            path = f"{inner}/{names[-1]}".strip("/")
            if what == "virtual":
                new_virtual(rng, store, group, path, raw, vcc)
            else:
                array = new_array(rng, group, names[-1])
                if rng.random() < 0.7 and 0 not in array.shape:
                    array[...] = cells_of(rng, array.shape, text(array))
            continue
        array = root[rng.choice(arrays)]
        if what == "delete":
            if rng.random() < 0.3:
                del root[array.path]
        elif what == "delete chunks" and array.ndim:
            for key in sync_list(store, array.path):
                if not key.endswith("zarr.json") and rng.random() < 0.5:
                    sync(store.delete(key))
        elif what == "resize" and array.ndim:
            array.resize(tuple(max(0, length + rng.randint(-3, 5)) for length in array.shape))
        elif what == "append" and array.ndim and 0 not in array.shape[1:]:
            array.append(cells_of(rng, (rng.randint(1, 4), *array.shape[1:]), text(array)))
        elif what == "write" and 0 not in array.shape:
            at = box(rng, array.shape) if array.ndim else ...
            shape = tuple(edge.stop - edge.start for edge in at) if array.ndim else ()
            array[at] = cells_of(rng, shape, text(array))
    return root


def text(array):
    dtype = str(array.dtype)
    return dtype if dtype in TYPES else "str"


def sync(coroutine):
    from zarr.core.sync import sync as run

    return run(coroutine)


def sync_list(store, prefix):
    async def collected():
        return [key async for key in store.list_prefix(prefix)]

    return sync(collected())


def contents(store):
    try:
        root = zarr.open_group(store, mode="r", zarr_format=3)
    except zarr.errors.GroupNotFoundError:
        return {}
    arrays = {}
    for path, node in sorted(root.members(max_depth=None)):
        if isinstance(node, zarr.Array):
            arrays[path] = {"shape": list(node.shape), "cells": values(node)}
    return arrays


def make(folder, seed, version):
    rng = random.Random(seed)
    folder = os.path.abspath(folder)
    os.makedirs(os.path.join(folder, "raw"))
    numpy.arange(100, dtype="<i4").tofile(os.path.join(folder, "raw", "x.bin"))
    prefix = f"file://{folder}/raw/"
    config = config_of(rng, prefix, version)
    more = {} if version == 1 else {"spec_version": 2}
    access = icechunk.containers_credentials({prefix: None})
    storage = icechunk.local_filesystem_storage(os.path.join(folder, "repository"))
    repo = icechunk.Repository.create(storage, config, authorize_virtual_chunk_access=access, **more)
    repo.save_config()
    session = repo.writable_session("main")
    zarr.create_group(session.store, zarr_format=3)
    names, snapshots, branches = [], [], ["main"]
    vcc = "vcc://raw/x.bin" if version == 2 else None
    change(rng, session, prefix + "x.bin", vcc, names)
    snapshots.append(session.commit("first"))
    for number in range(rng.randint(0, 4)):
        if rng.random() < 0.2:
            branches.append(f"b{number}")
            repo.create_branch(branches[-1], snapshot_id=rng.choice(snapshots))
        session = repo.writable_session(rng.choice(branches))
        change(rng, session, prefix + "x.bin", vcc, names)
        if session.has_uncommitted_changes:
            snapshots.append(session.commit(f"commit {number}"))
    expected = {}
    for snapshot in snapshots:
        arrays = contents(repo.readonly_session(snapshot_id=snapshot).store)
        expected[snapshot] = {"history": [], "arrays": arrays}
    with open(os.path.join(folder, "expected.json"), "w") as out:
        json.dump(expected, out)


if __name__ == "__main__":
    where, count = sys.argv[1], int(sys.argv[2])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    spec = int(sys.argv[4]) if len(sys.argv) > 4 else 2
    for seed in range(first, first + count):
        make(os.path.join(where, f"{spec}-{seed}"), seed, spec)
