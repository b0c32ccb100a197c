"""Writes the frames of this folder, which the unit tests of `src/format/codecs` decode.

Each file has frames of one codec, by numcodecs or by a filter of HDF5:

    line of text, u32 length, frame; for `inline` also u32 length, decoded bytes      little-endian

The line says what the frame decodes to: a kind of data of `data` below, with the bytes of an element and of all, or
`inline`. Words after that are for the test. Needs numpy, numcodecs, h5py and hdf5plugin.
"""

import io
import struct
from pathlib import Path

import h5py
import hdf5plugin
import numcodecs
import numpy as np

HERE = Path(__file__).parent


def data(kind, element, length):
    """Decoded bytes: `slow` and `steps` compress well, of `mixed` every fourth byte does not, and `noise` does not."""
    noise, state = bytearray(), 12345
    for _ in range(length if kind in ("mixed", "noise") else 0):
        state = (state * 1664525 + 1013904223) % 2**32
        noise.append(state >> 24)
    if kind == "noise":
        return bytes(noise)
    count = length // element + 1
    values = (at // (8_000 if kind == "slow" else 9) * 3 for at in range(count))
    steps = bytearray(b"".join(value.to_bytes(8, "little")[:element].ljust(element, b"\0") for value in values)[:length])
    if kind == "mixed":
        steps[::4] = noise[::4]
    return bytes(steps)


class Frames:
    """The frames of one file."""

    def __init__(self):
        self.bytes = bytearray()

    def add(self, line, frame, decoded=None):
        for part in [frame] if decoded is None else [frame, decoded]:
            if line:
                self.bytes += line.encode() + b"\n"
                line = None
            self.bytes += struct.pack("<I", len(part)) + bytes(part)

    def add_data(self, kind, element, length, encode, *words):
        raw = np.frombuffer(data(kind, element, length), "u1")
        self.add(" ".join(map(str, [kind, element, length, *words])), encode(raw))

    def write(self, name):
        (HERE / f"{name}.bin").write_bytes(self.bytes)


def chunk(array, **filters):
    """Stores an array as one chunk of an HDF5 file, and returns the chunk's bytes."""
    with h5py.File(io.BytesIO(), "w") as file:
        dataset = file.create_dataset("d", data=array, chunks=array.shape, **filters)
        mask, stored = dataset.id.read_direct_chunk((0,) * array.ndim)
    assert mask == 0
    return stored


def blosc():
    for compressor in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]:
        frames = Frames()
        for shuffle in [0, 1, 2]:
            for element in [1, 2, 4, 8, 16]:
                # Blocks of fewer than 128 elements are not split; those that are split have 64 KiB at least.
                cases = [("steps", 250, 100), ("steps", 128, 128)] + [("slow", 40_001, 16_384)] * (element in (2, 4))
                for kind, count, block in cases:
                    codec = numcodecs.Blosc(compressor, 5, shuffle, block * element)
                    frames.add_data(kind, element, count * element, lambda raw: codec.encode(raw.view(f"V{element}")))
            codec = numcodecs.Blosc(compressor, 5, shuffle)
            for kind, length in [("steps", 0), ("steps", 1), ("noise", 40), ("mixed", 1200)]:
                frames.add_data(kind, 4, length, lambda raw: codec.encode(raw.view("u4") if length % 4 == 0 else raw))
        frames.write(f"blosc-{compressor}")


def streams():
    codecs = {
        "zstd": numcodecs.Zstd(), "gzip": numcodecs.GZip(), "zlib": numcodecs.Zlib(), "bzip2": numcodecs.BZ2(),
        "lz4": numcodecs.LZ4(), "crc32": numcodecs.CRC32(), "crc32c": numcodecs.CRC32C(),
        "adler32": numcodecs.Adler32(),
    }
    for name, codec in codecs.items():
        frames = Frames()
        for kind, length in [("steps", 0), ("steps", 1), ("steps", 1000), ("noise", 100), ("mixed", 165)]:
            frames.add_data(kind, 4, length, codec.encode)
        frames.write(name)
    frames = Frames()
    for element in [1, 2, 3, 4, 8, 16]:
        frames.add_data("steps", element, 35 * element, numcodecs.Shuffle(element).encode)
    frames.write("shuffle")
    frames = Frames()
    for kind, length in [("steps", 1), ("steps", 777), ("noise", 101)]:
        frames.add_data(kind, 4, length, numcodecs.Fletcher32().encode)
    frames.write("fletcher32")


def hdf5():
    filters = {
        "hdf5-zstd": hdf5plugin.Zstd(), "hdf5-bzip2": hdf5plugin.BZip2(), "hdf5-lz4": hdf5plugin.LZ4(nbytes=512),
        "hdf5-lzf": {"compression": "lzf"}, "hdf5-fletcher32": {"fletcher32": True},
        "hdf5-blosc": hdf5plugin.Blosc("zlib", 5, 1), "hdf5-deflate": {"compression": "gzip"},
    }
    for name, arguments in filters.items():
        frames = Frames()
        for kind, length in [("steps", 2000), ("mixed", 1204)]:
            frames.add_data(kind, 4, length, lambda raw: chunk(raw.view("i4"), **arguments))
        frames.write(name)
    frames = Frames()
    for element in [2, 4, 8]:
        arguments = {"compression": "gzip", "shuffle": True, "fletcher32": True}
        frames.add_data("steps", element, 200 * element, lambda raw: chunk(raw.view(f"i{element}"), **arguments))
    frames.write("hdf5-shuffle-deflate-fletcher32")
    for compressor in ["none", "lz4", "zstd"]:
        frames = Frames()
        for element in [1, 2, 4, 8]:
            for nelems in [0, 64]:
                arguments = hdf5plugin.Bitshuffle(nelems=nelems, cname=compressor)
                for count in [5, 8, 139]:
                    encode = lambda raw: chunk(raw.view(f"i{element}"), **arguments)
                    frames.add_data("steps", element, count * element, encode, nelems)
        frames.write(f"hdf5-bitshuffle-{compressor}")


def numbers():
    types = ["i1", "<i2", ">i2", "<i4", "<i8", "<u2", "<f2", ">f4", "<f8"]
    deltas, scales = Frames(), Frames()
    random = np.random.default_rng(1)
    for to in types:
        for of in types:
            stored = (random.normal(size=5) * 20).astype(of) if of[-2] == "f" else random.integers(0, 100, 5).astype(of)
            stored = stored.astype(of)
            decoded = numcodecs.Delta(to, of).decode(stored)
            deltas.add(f"inline {to} {of}", stored.tobytes(), decoded.tobytes())
            codec = numcodecs.FixedScaleOffset(offset=2.7, scale=0.3, dtype=to, astype=of)
            scales.add(f"inline {to} {of}", stored.tobytes(), codec.decode(stored).tobytes())
    deltas.write("delta")
    scales.write("fixedscaleoffset")


def values():
    texts = np.array(["", "a", "Grüße", "b" * 300, ""], object)
    for name, codec, values in [
        ("vlen-utf8", numcodecs.VLenUTF8(), texts),
        ("vlen-bytes", numcodecs.VLenBytes(), np.array([text.encode("latin1") for text in texts], object)),
    ]:
        frames = Frames()
        for values in [values, values[:0]]:
            decoded = [value if isinstance(value, bytes) else value.encode() for value in values]
            starts = ",".join(str(sum(map(len, decoded[:at]))) for at in range(len(decoded)))
            frames.add(f"inline {starts}", codec.encode(values), b"".join(decoded))
        frames.write(name)


if __name__ == "__main__":
    for make in [blosc, streams, hdf5, numbers, values]:
        make()
