"""Replaces functions in the relocation slots of loaded libraries (ELF, 64 bits, Linux).

A library calls a function of another library, or one of its own that others may replace, through a
slot: a pointer that the dynamic linker filled (the global offset table). `find_slots` reads a
loaded library's dynamic section, which lists the slots with the functions' names; `Slots.put`
writes other pointers there and `Slots.restore` the old ones. Nothing on disk is touched, and no
code. Pages that the linker made read-only (RELRO) are writable for the moment of the change.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import TYPE_CHECKING

from stowage.errors import StowageError

if TYPE_CHECKING:
    from collections.abc import Sequence

PT_LOAD, PT_DYNAMIC = 1, 2
DT_PLTRELSZ, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_STRSZ = 2, 5, 6, 7, 8, 10
DT_JMPREL, DT_RELACOUNT = 23, 0x6FFFFFF9
RELOCATION = struct.Struct("<QQq")  # offset, symbol << 32 | type, addend
SYMBOL_BYTES = 24
# Relocations that are a plain pointer to a function: GLOB_DAT and JUMP_SLOT.
POINTER_TYPES = {"x86_64": (6, 7), "aarch64": (1025, 1026)}
PROT_READ, PROT_WRITE = 1, 2
SEGMENT_WRITABLE = 2
POINTER_BYTES = 8


class Library:
    """A loaded library: `base` address, address of its dynamic section, and (address, bytes) of
    its variables that have an initial value."""

    def __init__(self, base: int, headers: list[ProgramHeader]) -> None:
        self.base = base
        self.dynamic = next(base + h.address for h in headers if h.type == PT_DYNAMIC)
        self.variables = [(base + h.address, h.file_size) for h in headers
                          if h.type == PT_LOAD and h.flags & SEGMENT_WRITABLE]


class ProgramHeader(ctypes.Structure):
    """Elf64_Phdr (elf.h)."""

    _fields_ = [("type", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("offset", ctypes.c_uint64), ("address", ctypes.c_uint64),
                ("physical", ctypes.c_uint64), ("file_size", ctypes.c_uint64),
                ("memory_size", ctypes.c_uint64), ("alignment", ctypes.c_uint64)]


class LoadedObject(ctypes.Structure):
    """The first members of dl_phdr_info (link.h)."""

    _fields_ = [("base", ctypes.c_uint64), ("name", ctypes.c_char_p),
                ("headers", ctypes.POINTER(ProgramHeader)), ("header_count", ctypes.c_uint16)]


def loaded_libraries(names: Sequence[str]) -> dict[str, Library]:
    """{file name: Library} of those among `names`."""
    found = {}

    def visit(pointer: ctypes._Pointer[LoadedObject], _size: int, _data: int | None) -> int:
        loaded = pointer.contents
        name = os.path.basename((loaded.name or b"").decode(errors="replace"))
        if name in names:
            headers = [loaded.headers[index] for index in range(loaded.header_count)]
            found[name] = Library(loaded.base, headers)
        return 0

    visitor = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(LoadedObject), ctypes.c_size_t,
                               ctypes.c_void_p)
    ctypes.CDLL(None).dl_iterate_phdr(visitor(visit), None)
    return found


def dynamic_entries(base: int, address: int) -> dict[int, int]:
    """{tag: value} of a dynamic section in memory; addresses are absolute."""
    entries = {}
    while True:
        tag, value = struct.unpack("<qQ", ctypes.string_at(address, 16))
        if tag == 0:
            break
        entries[tag] = value
        address += 16
    # glibc relocates these addresses in place; other linkers leave them relative.
    for tag in (DT_STRTAB, DT_SYMTAB, DT_RELA, DT_JMPREL):
        if entries.get(tag, base) < base:
            entries[tag] += base
    return entries


def name_offsets(strings: bytes, name: str) -> set[int]:
    """All places in the string table at which a symbol of that name may begin. A table may keep a
    name as the end of a longer one."""
    wanted, at, places = name.encode() + b"\0", 0, set()
    while (at := strings.find(wanted, at)) >= 0:
        places.add(at)
        at += 1
    return places


def find_slots(library: Library, symbols: Sequence[str]) -> dict[str, list[int]]:
    """{symbol: [address of a slot]} of a loaded library."""
    base = library.base
    machine = os.uname().machine
    if machine not in POINTER_TYPES:
        raise StowageError(f"PyTorch's libraries cannot be answered on a {machine} machine",
                           "record on x86_64 or aarch64")
    entries = dynamic_entries(base, library.dynamic)
    strings = ctypes.string_at(entries[DT_STRTAB], entries[DT_STRSZ])
    symbol_at = {place: name for name in symbols for place in name_offsets(strings, name)}
    slots: dict[str, list[int]] = {}
    tables = [(entries.get(DT_JMPREL), entries.get(DT_PLTRELSZ, 0), 0),
              (entries.get(DT_RELA), entries.get(DT_RELASZ, 0), entries.get(DT_RELACOUNT, 0))]
    for address, size, relative in tables:
        skipped = relative * RELOCATION.size  # relative relocations name no symbol
        if not address or size <= skipped:
            continue
        rows = ctypes.string_at(address + skipped, size - skipped)
        for offset, information, _addend in RELOCATION.iter_unpack(rows):
            if information & 0xFFFFFFFF not in POINTER_TYPES[machine]:
                continue
            symbol = entries[DT_SYMTAB] + (information >> 32) * SYMBOL_BYTES
            name = symbol_at.get(ctypes.c_uint32.from_address(symbol).value)
            if name:
                slots.setdefault(name, []).append(base + offset)
    return slots


def page_protection(address: int) -> int:
    """PROT_* of the page that holds the address."""
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        for line in maps:
            span, flags, *_ = line.split()
            first, end = (int(part, 16) for part in span.split("-"))
            if first <= address < end:
                return sum(bit for letter, bit in zip("rwx", (1, 2, 4)) if letter in flags)
    raise RuntimeError(f"no page is mapped at {address:#x}")


def write_pointer(address: int, value: int) -> None:
    """Write the slot, which may lie in a page that is read-only."""
    protection = page_protection(address)
    page = os.sysconf("SC_PAGESIZE")
    start = address // page * page
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    writable = protection & PROT_WRITE
    if not writable and libc.mprotect(start, page, PROT_READ | PROT_WRITE):
        raise StowageError(
            f"PyTorch's libraries cannot be answered: mprotect: {os.strerror(ctypes.get_errno())}",
            "the system forbids a process to change its own pages; record on another machine")
    ctypes.c_uint64.from_address(address).value = value
    if not writable:
        libc.mprotect(start, page, protection)


def address_of(function: ctypes._CFunctionType) -> int:
    """Where the code of a ctypes function begins."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


class RememberedPointers:
    """The contents of a library's variables, to undo what is stored in them afterwards."""

    def __init__(self, library: Library) -> None:
        self.before = [(address, ctypes.string_at(address, size))
                       for address, size in library.variables]

    def restore(self, pointer: int) -> None:
        """Put back what each variable held that holds the pointer now."""
        wanted = struct.pack("<Q", pointer)
        for start, old in self.before:
            now, at = ctypes.string_at(start, len(old)), -1
            while (at := now.find(wanted, at + 1)) >= 0:
                if at % POINTER_BYTES == start % POINTER_BYTES:
                    write_pointer(start + at, struct.unpack_from("<Q", old, at)[0])


class Slots:
    """Slots that were changed, and what they held. Threads that call the functions meanwhile see
    the old or the new pointer, whole."""

    def __init__(self) -> None:
        self.before: list[tuple[int, int]] = []  # (address, what it held)

    def put(self, address: int, function: ctypes._CFunctionType) -> None:
        """Let the slot point to a ctypes function, which the caller keeps alive."""
        self.before.append((address, ctypes.c_uint64.from_address(address).value))
        write_pointer(address, address_of(function))

    def restore(self) -> None:
        """Write back what the slots held, the last change first."""
        while self.before:
            write_pointer(*self.before.pop())
