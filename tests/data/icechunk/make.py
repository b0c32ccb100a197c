"""Makes the repositories of this folder, and what their versions hold.

    python make.py spec1 FOLDER      with icechunk 1.1
    python make.py spec2 FOLDER      with icechunk 2.3
    python make.py dump FOLDER       writes expected.json of both, with icechunk 2.3

Ids and times differ with each run, so all tests take them from expected.json.
"""

import json
import os
import shutil
import sys
import time
from datetime import UTC, datetime

import icechunk
import numpy
import zarr


# The cells of arrays whose chunks are in s3://fixture/raw.bin, which has the integers from 2 to 39.
VIRTUAL = {
    "virtual": [*range(4, 9), *range(9, 14), *[-1] * 5, *range(14, 19), *range(19, 24)],
    "changed": "refused",
}


def values(array):
    """Returns all cells, with text for what JSON lacks."""
    cells = array[...]
    flat = numpy.asarray(cells).reshape(-1)
    if flat.dtype.kind in "UTO":
        return [str(cell) for cell in flat]
    return [None if cell != cell else cell for cell in flat.tolist()]


def contents(store):
    """Returns the shape and the cells of each array of a version."""
    root = zarr.open_group(store, mode="r", zarr_format=3)
    arrays = {}
    for path, node in sorted(root.members(max_depth=None)):
        if isinstance(node, zarr.Array):
            cells = VIRTUAL.get(path) or values(node)
            arrays[path] = {"shape": list(node.shape), "cells": cells}
    return arrays


def config_of(version):
    config = icechunk.RepositoryConfig.default()
    config.inline_chunk_threshold_bytes = 40
    split = icechunk.ManifestSplittingConfig.from_dict(
        {icechunk.ManifestSplitCondition.name_matches("split"): {icechunk.ManifestSplitDimCondition.Any(): 2}}
    )
    config.manifest = icechunk.ManifestConfig(splitting=split)
    store = icechunk.s3_store(region="us-east-1")
    prefix = "s3://fixture/"
    if version == 1:
        container = icechunk.VirtualChunkContainer(prefix, store)
    else:
        container = icechunk.VirtualChunkContainer(prefix, store, name="beside")
    config.set_virtual_chunk_container(container)
    return config


def first(session, raw, version):
    """Writes the first commit."""
    store = session.store
    root = zarr.create_group(store, zarr_format=3, attributes={"title": "small"})
    time_axis = root.create_array("time", shape=(4,), chunks=(4,), dtype="int32", dimension_names=["time"])
    time_axis.attrs["units"] = "days since 2000-01-01"
    time_axis[:] = [0, 1, 2, 3]
    x = root.create_array("x", shape=(6,), chunks=(6,), dtype="float64", dimension_names=["x"])
    x[:] = numpy.arange(6) * 0.5
    t = root.create_array("t", shape=(4, 6), chunks=(2, 6), dtype="float32", dimension_names=["time", "x"])
    t[:] = numpy.arange(24).reshape(4, 6) + 0.25
    split = root.create_array(
        "split", shape=(7, 3), chunks=(1, 3), dtype="int64", dimension_names=["y", "z"], fill_value=-9
    )
    split[:2] = numpy.arange(6).reshape(2, 3)
    split[5] = [50, 51, 52]
    inner = root.create_group("deep").create_group("inner")
    sharded = inner.create_array("sharded", shape=(6, 4), chunks=(2, 2), shards=(4, 4), dtype="uint16")
    sharded[:4] = numpy.arange(16).reshape(4, 4) + 1000
    scalar = root.create_array("scalar", shape=(), dtype="int32")
    scalar[...] = 42
    root.create_array("empty", shape=(0, 3), chunks=(1, 3), dtype="int8", dimension_names=["none", "z"])
    absent = root.create_array("absent", shape=(3,), chunks=(2,), dtype="float64", fill_value=1.5)
    absent.attrs["note"] = "no chunk"
    names = root.create_array("names", shape=(3,), chunks=(2,), dtype=str, dimension_names=["n"])
    names[:] = numpy.array(["Oslo", "", "Zürich"], dtype=object)
    virtual = root.create_array(
        "virtual", shape=(5, 5), chunks=(1, 5), dtype="<i4", dimension_names=["v", "w"],
        compressors=None, filters=None, fill_value=-1,
    )
    location = raw if version == 1 else "vcc://beside/raw.bin"
    store.set_virtual_ref("virtual/c/0/0", raw, offset=8, length=20)
    store.set_virtual_ref("virtual/c/1/0", location, offset=28, length=20)
    # References hold while the file is not written later, or has the same tag.
    store.set_virtual_ref("virtual/c/3/0", raw, offset=48, length=20, checksum=datetime(2100, 1, 1, tzinfo=UTC))
    store.set_virtual_ref("virtual/c/4/0", raw, offset=68, length=20, checksum="0")
    changed = root.create_array(
        "changed", shape=(2, 5), chunks=(1, 5), dtype="<i4", dimension_names=["c", "w"],
        compressors=None, filters=None, fill_value=-1,
    )
    changed.attrs["note"] = "references to other versions of the file"
    store.set_virtual_ref("changed/c/0/0", raw, offset=48, length=20, checksum=datetime(2000, 1, 1, tzinfo=UTC))
    store.set_virtual_ref("changed/c/1/0", raw, offset=48, length=20, checksum="other")
    return session.commit("first: ä", metadata={"by": "make.py", "run": 7})


def second(session):
    root = zarr.open_group(session.store, zarr_format=3)
    root["t"][2:] = -1
    root["split"].resize((9, 3))
    root["split"][8] = [80, 81, 82]
    root["names"][1] = "Bergen"
    root["time"].attrs["units"] = "days since 2001-01-01"
    return session.commit("second")


def make(folder, version):
    os.makedirs(folder)
    folder = os.path.abspath(folder)
    raw = "s3://fixture/raw.bin"
    config = config_of(version)
    location = os.path.join(folder, "small.icechunk")
    storage = icechunk.local_filesystem_storage(location)
    more = {} if version == 1 else {"spec_version": 2}
    repo = icechunk.Repository.create(storage, config, **more)
    repo.save_config()
    one = first(repo.writable_session("main"), raw, version)
    repo.create_tag("v1", snapshot_id=one)
    repo.create_tag("gone", snapshot_id=one)
    repo.delete_tag("gone")
    repo.create_branch("dev", snapshot_id=one)
    time.sleep(1.1)
    second(repo.writable_session("main"))
    session = repo.writable_session("dev")
    zarr.open_group(session.store, zarr_format=3)["x"][:] = 7
    session.commit("on dev")
    if version == 2:
        compressed(os.path.join(folder, "compressed.icechunk"), config)
    for repository in os.listdir(folder):
        # Old repository objects, which no reader needs.
        shutil.rmtree(os.path.join(folder, repository, "overwritten"), ignore_errors=True)


def compressed(location, config):
    """Makes a repository whose locations are compressed with a dictionary."""
    storage = icechunk.local_filesystem_storage(location)
    config.manifest = icechunk.ManifestConfig(
        virtual_chunk_location_compression=icechunk.ManifestVirtualChunkLocationCompressionConfig(min_num_chunks=20)
    )
    repo = icechunk.Repository.create(storage, config, spec_version=2)
    repo.save_config()
    session = repo.writable_session("main")
    root = zarr.create_group(session.store, zarr_format=3)
    root.create_array("v", shape=(1200,), chunks=(1,), dtype="<i4", compressors=None, filters=None)
    specs = [
        icechunk.VirtualChunkSpec(index=[at], location=f"vcc://beside/{'raw.bin' if at % 3 else 'copy-%d.bin' % (at % 7)}", offset=4 * (at % 30), length=4)
        for at in range(1200)
    ]
    session.store.set_virtual_refs("v", specs)
    session.commit("many")


def dump(folder):
    """Writes what all versions hold."""
    result = {}
    for path in sorted(os.listdir(folder)):
        inner = os.path.abspath(os.path.join(folder, path, "small.icechunk"))
        if not os.path.isdir(inner):
            continue
        repo = icechunk.Repository.open(icechunk.local_filesystem_storage(inner))
        versions = {}
        for branch in sorted(repo.list_branches()):
            history = [
                {
                    "id": it.id,
                    "parent": it.parent_id,
                    "time": int(it.written_at.timestamp() * 1_000_000 + 0.5),
                    "message": it.message,
                    "metadata": it.metadata,
                }
                for it in repo.ancestry(branch=branch)
            ]
            versions[branch] = {"history": history, "arrays": contents(repo.readonly_session(branch).store)}
        tag = repo.lookup_tag("v1")
        versions["v1"] = {"history": [{"id": tag}], "arrays": contents(repo.readonly_session(tag="v1").store)}
        result[path] = versions
    with open(os.path.join(folder, "expected.json"), "w") as out:
        json.dump(result, out)


if __name__ == "__main__":
    what, where = sys.argv[1:]
    match what:
        case "dump":
            dump(where)
        case _:
            make(os.path.join(where, what), int(what[-1]))
