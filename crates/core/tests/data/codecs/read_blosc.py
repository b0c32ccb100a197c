"""Reads chunks of Blosc that gridfusion encoded, and measures numcodecs.

    python read_blosc.py FOLDER

`chunks.bin` has pairs of a chunk and its bytes, each after its length as a little-endian u32. `cells.raw` has float32.
"""

import sys
import time
from pathlib import Path

from numcodecs import Blosc, Zstd, blosc

folder = Path(sys.argv[1])
blosc.use_threads = False


def parts(file):
    at = 0
    while at < len(file):
        length = int.from_bytes(file[at : at + 4], "little")
        yield file[at + 4 : at + 4 + length]
        at += 4 + length


def check(file):
    count, rest = 0, parts(file)
    for stored in rest:
        raw = next(rest)
        found = bytes(Blosc().decode(stored)) if raw else b""
        assert found == raw, (count, len(raw), stored[:16].hex())
        # The lengths in the header: README_CHUNK_FORMAT.rst of c-blosc.
        lengths = [int.from_bytes(stored[at : at + 4], "little") for at in (4, 12)]
        assert lengths == [len(raw), len(stored)], (count, lengths)
        count += 1
    print(count, "chunks")


def rate(name, codec, raw):
    best = None
    for _ in range(3):
        start = time.perf_counter()
        stored = sum(len(codec.encode(raw[at : at + (4 << 20)])) for at in range(0, len(raw), 4 << 20))
        seconds = time.perf_counter() - start
        best = seconds if best is None else min(best, seconds)
    print(f"numcodecs {name}: {len(raw) / 1e6 / best:.0f} MB/s, ratio {len(raw) / stored:.2f}")


def measure(raw):
    import numpy as np

    cells = np.frombuffer(raw, "<f4")

    class Cells:
        def __init__(self, codec):
            self.codec = codec

        def encode(self, part):
            return self.codec.encode(np.frombuffer(part, "<f4"))

    rate("zstd 3", Zstd(level=3), cells.tobytes())
    for name in ["zstd", "lz4", "zlib"]:
        for level in [1, 3, 5]:
            for shuffle in [Blosc.SHUFFLE, Blosc.BITSHUFFLE]:
                codec = Blosc(cname=name, clevel=level, shuffle=shuffle)
                rate(f"{name} {level} {'shuffle' if shuffle == 1 else 'bitshuffle'}", Cells(codec), raw)


if (folder / "chunks.bin").exists():
    check((folder / "chunks.bin").read_bytes())
if (folder / "cells.raw").exists():
    measure((folder / "cells.raw").read_bytes())
