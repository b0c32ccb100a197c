"""Makes the repositories of this folder, and what their versions hold.

    python make.py spec1 FOLDER      with icechunk 1.1
    python make.py spec2 FOLDER      with icechunk 2.3
    python make.py dump FOLDER       writes expected.json of both, with icechunk 2.3

Ids and times differ with each run, so all tests take them from expected.json.
"""

import json
import os
import sys
import time

import icechunk
import numpy
import zarr


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
            arrays[path] = {"shape": list(node.shape), "cells": values(node)}
    return arrays


def config_of(folder, version):
    config = icechunk.RepositoryConfig.default()
    config.inline_chunk_threshold_bytes = 40
    split = icechunk.ManifestSplittingConfig.from_dict(
        {icechunk.ManifestSplitCondition.name_matches("split"): {icechunk.ManifestSplitDimCondition.Any(): 2}}
    )
    config.manifest = icechunk.ManifestConfig(splitting=split)
    store = icechunk.local_filesystem_store(folder)
    prefix = "file://" + folder + "/"
    if version == 1:
        container = icechunk.VirtualChunkContainer(prefix, store)
    else:
        container = icechunk.VirtualChunkContainer(prefix, store, name="beside")
    config.set_virtual_chunk_container(container)
    return config, prefix


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
        "virtual", shape=(4, 5), chunks=(1, 5), dtype="<i4", dimension_names=["v", "w"],
        compressors=None, filters=None, fill_value=-1,
    )
    location = raw if version == 1 else "vcc://beside/" + os.path.basename(raw)
    store.set_virtual_ref("virtual/c/0/0", raw, offset=8, length=20)
    store.set_virtual_ref("virtual/c/1/0", location, offset=28, length=20)
    # The reference holds while the file is not written later.
    store.set_virtual_ref("virtual/c/3/0", raw, offset=48, length=20, checksum=int(time.time()) + 3600)
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
    raw = os.path.join(folder, "raw.bin")
    numpy.arange(2, 40, dtype="<i4").tofile(raw)
    config, prefix = config_of(folder, version)
    location = os.path.join(folder, "small.icechunk")
    storage = icechunk.local_filesystem_storage(location)
    more = {} if version == 1 else {"spec_version": 2}
    repo = icechunk.Repository.create(
        storage, config, authorize_virtual_chunk_access={prefix: None}, **more
    )
    repo.save_config()
    one = first(repo.writable_session("main"), "file://" + raw, version)
    repo.create_tag("v1", snapshot_id=one)
    repo.create_tag("gone", snapshot_id=one)
    repo.delete_tag("gone")
    repo.create_branch("dev", snapshot_id=one)
    time.sleep(1.1)
    second(repo.writable_session("main"))
    session = repo.writable_session("dev")
    zarr.open_group(session.store, zarr_format=3)["x"][:] = 7
    session.commit("on dev")
    many = os.path.join(folder, "compressed.icechunk")
    if version == 2:
        compressed(many, config, prefix, "file://" + raw)


def compressed(location, config, prefix, raw):
    """Makes a repository whose locations are compressed with a dictionary."""
    storage = icechunk.local_filesystem_storage(location)
    config.manifest = icechunk.ManifestConfig(
        virtual_chunk_location_compression=icechunk.ManifestVirtualChunkLocationCompressionConfig(min_num_chunks=20)
    )
    repo = icechunk.Repository.create(storage, config, authorize_virtual_chunk_access={prefix: None}, spec_version=2)
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
        prefix = "file://" + os.path.dirname(inner) + "/"
        repo = icechunk.Repository.open(
            icechunk.local_filesystem_storage(inner), authorize_virtual_chunk_access={prefix: None}
        )
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
        json.dump(result, out, indent=1)


if __name__ == "__main__":
    what, where = sys.argv[1:]
    match what:
        case "dump":
            dump(where)
        case _:
            make(os.path.join(where, what), int(what[-1]))
