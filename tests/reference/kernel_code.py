"""Kernels' code in the wheels of frameworks and CUDA libraries, by library and architecture.

    python kernel_code.py WHEEL... > kernel_code.json

With eager module loading a process has the code for its card's architecture on the card. Here is
how much that is: the allocated sections (code, constants, global variables; not the shared memory
that a kernel is launched with) of all device programs (cubins) in each shared library's fat
binaries, in bytes. PTX is not counted. Needs lz4 and zstandard.

Where the wheels come from: pip download --no-deps --only-binary=:all: --platform
manylinux2014_x86_64 --python-version 310 torch==1.13.1 (and so on; the names are in the JSON).
"""

import collections
import json
import mmap
import os
import struct
import sys
import tempfile
import zipfile

import lz4.block
import zstandard

MAGIC = struct.pack("<I", 0xBA55ED50)
ELF_KIND, LZ4_FLAG, ZSTD_FLAG = 2, 0x2000, 0x8000
ALLOCATED, WITHOUT_BITS = 2, 8
SMALLEST_LIBRARY = 3_000_000


def elf_sections(data):
    """(name, type, flags, offset, size) of a 64-bit ELF file's sections."""
    table = struct.unpack_from("<Q", data, 0x28)[0]
    entry_size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    names_at = struct.unpack_from("<Q", data, table + names * entry_size + 24)[0]
    for i in range(count):
        at = table + i * entry_size
        name, kind, flags, _, offset, size = struct.unpack_from("<IIQQQQ", data, at)
        end = data.find(b"\0", names_at + name)
        yield data[names_at + name : end].decode(), kind, flags, offset, size


def code_bytes(cubin):
    total = 0
    for name, kind, flags, _, size in elf_sections(cubin):
        launched_with = kind == WITHOUT_BITS and not name.startswith(".nv.global")
        if flags & ALLOCATED and not launched_with:
            total += size
    return total


def unpacked(payload, compressed, size, flags):
    if flags & LZ4_FLAG:
        return lz4.block.decompress(payload[:compressed], uncompressed_size=size)
    if flags & ZSTD_FLAG:
        return zstandard.ZstdDecompressor().decompress(payload[:compressed], max_output_size=size)
    return payload


def cubins(data, begin, end):
    """(architecture, cubin) of each device program between two places of a library."""
    at = data.find(MAGIC, begin, end)
    while at >= 0:
        version, header, size = struct.unpack_from("<HHQ", data, at + 4)
        if (version, header) != (1, 16):
            raise ValueError(f"fat binary of version {version} at {at}")
        entry, stop = at + header, at + header + size
        while entry < stop:
            kind, _, entry_header, payload, compressed = struct.unpack_from("<HHIQI", data, entry)
            architecture = struct.unpack_from("<I", data, entry + 28)[0]
            flags = struct.unpack_from("<Q", data, entry + 40)[0]
            full = struct.unpack_from("<Q", data, entry + 56)[0] if entry_header >= 64 else payload
            if kind == ELF_KIND:
                start = entry + entry_header
                yield architecture, unpacked(data[start : start + payload], compressed, full, flags)
            entry += entry_header + payload
        at = data.find(MAGIC, stop, end)


def library_code(path):
    totals = collections.Counter()
    with open(path, "rb") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for name, _, _, offset, size in elf_sections(data):
                if name in (".nv_fatbin", "__nv_relfatbin"):
                    for architecture, cubin in cubins(data, offset, offset + size):
                        totals[architecture] += code_bytes(cubin)
    return {str(architecture): totals[architecture] for architecture in sorted(totals)}


def wheel_code(path):
    libraries = {}
    with zipfile.ZipFile(path) as wheel, tempfile.TemporaryDirectory() as folder:
        for member in sorted(wheel.namelist()):
            if ".so" not in member or wheel.getinfo(member).file_size < SMALLEST_LIBRARY:
                continue
            library = wheel.extract(member, folder)
            code = library_code(library)
            os.remove(library)
            if code:
                libraries[os.path.basename(member)] = code
    return libraries


def main():
    wheels = {}
    for path in sorted(sys.argv[1:]):
        package, version = os.path.basename(path).split("-")[:2]
        wheels[f"{package} {version}"] = wheel_code(path)
    print(json.dumps(wheels, indent=1))


main()
