"""What the driver says a process holds on a GPU. No torch here.

Three readers, tried in this order: the pynvml package, libnvidia-ml.so.1 through ctypes, the
nvidia-smi program. All answer the same four questions (see `Reader`). `ProcessMemory` turns a reader
into one figure, "bytes of this process on the device", and the name of the method that gave it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess

_NOT_AVAILABLE = (1 << 64) - 1  # NVML_VALUE_NOT_AVAILABLE
_INSUFFICIENT_SIZE = 7  # NVML_ERROR_INSUFFICIENT_SIZE
_MIB = 1 << 20


class Unavailable(Exception):
    """This reader, or this question, is not served on this machine."""


class Reader:
    """One GPU. Every method raises Unavailable where the driver does not answer."""

    name = ""

    def processes(self) -> dict[int, int | None]:
        """Compute processes on the device: process id (the host's) to bytes, None where not told."""
        raise NotImplementedError

    def memory(self) -> tuple[int, int]:
        """(total, used) bytes of the device, as nvidia-smi shows them."""
        raise NotImplementedError

    def driver(self) -> str:
        raise NotImplementedError

    def pcie(self) -> dict[str, int]:
        """generation and width, now and at most. A GPU at rest often runs its link slower."""
        raise NotImplementedError


class Pynvml(Reader):
    name = "pynvml"

    def __init__(self, uuid: str | None):
        try:
            import pynvml
            self.nvml = pynvml
            pynvml.nvmlInit()
            self.device = (pynvml.nvmlDeviceGetHandleByUUID(uuid) if uuid
                           else pynvml.nvmlDeviceGetHandleByIndex(0))
        except Exception as error:
            raise Unavailable(str(error)) from error

    def _ask(self, function: str, *arguments):
        try:
            return getattr(self.nvml, function)(*arguments)
        except Exception as error:
            raise Unavailable(f"{function}: {error}") from error

    def processes(self):
        found = self._ask("nvmlDeviceGetComputeRunningProcesses", self.device)
        return {entry.pid: _known(entry.usedGpuMemory) for entry in found}

    def memory(self):
        answer = self._ask("nvmlDeviceGetMemoryInfo", self.device)
        return int(answer.total), int(answer.used)

    def driver(self):
        text = self._ask("nvmlSystemGetDriverVersion")
        return text.decode() if isinstance(text, bytes) else text

    def pcie(self):
        return {name: self._ask(function, self.device) for name, function in _PCIE.items()}


class _ProcessInfo(ctypes.Structure):  # nvmlProcessInfo_t as ..._v2 and ..._v3 fill it
    _fields_ = [("pid", ctypes.c_uint), ("usedGpuMemory", ctypes.c_ulonglong),
                ("gpuInstanceId", ctypes.c_uint), ("computeInstanceId", ctypes.c_uint)]


class _Memory(ctypes.Structure):  # nvmlMemory_t
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong),
                ("used", ctypes.c_ulonglong)]


_PCIE = {"generation": "nvmlDeviceGetCurrPcieLinkGeneration",
         "width": "nvmlDeviceGetCurrPcieLinkWidth",
         "max_generation": "nvmlDeviceGetMaxPcieLinkGeneration",
         "max_width": "nvmlDeviceGetMaxPcieLinkWidth"}


class Library(Reader):
    name = "libnvidia-ml"

    def __init__(self, uuid: str | None, path: str = "libnvidia-ml.so.1"):
        try:
            self.library = ctypes.CDLL(path)
        except OSError as error:
            raise Unavailable(str(error)) from error
        self._ask("nvmlInit_v2")
        self.device = ctypes.c_void_p()
        if uuid:
            self._ask("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(self.device))
        else:
            self._ask("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(0), ctypes.byref(self.device))

    def _ask(self, function: str, *arguments, accept=(0,)) -> int:
        try:
            status = getattr(self.library, function)(*arguments)
        except AttributeError as error:
            raise Unavailable(f"{function} is not in this driver") from error
        if status not in accept:
            raise Unavailable(f"{function} returned {status}")
        return status

    def processes(self):
        count = ctypes.c_uint(0)
        function = "nvmlDeviceGetComputeRunningProcesses_v3"
        status = self._ask(function, self.device, ctypes.byref(count), None,
                           accept=(0, _INSUFFICIENT_SIZE))
        while status == _INSUFFICIENT_SIZE:
            entries = (_ProcessInfo * (count.value + 8))()  # room for processes that start meanwhile
            count = ctypes.c_uint(len(entries))
            status = self._ask(function, self.device, ctypes.byref(count), entries,
                               accept=(0, _INSUFFICIENT_SIZE))
        return {entries[i].pid: _known(entries[i].usedGpuMemory) for i in range(count.value)}

    def memory(self):
        answer = _Memory()
        self._ask("nvmlDeviceGetMemoryInfo", self.device, ctypes.byref(answer))
        return answer.total, answer.used

    def driver(self):
        text = ctypes.create_string_buffer(96)
        self._ask("nvmlSystemGetDriverVersion", text, ctypes.c_uint(len(text)))
        return text.value.decode()

    def pcie(self):
        answers = {}
        for name, function in _PCIE.items():
            value = ctypes.c_uint()
            self._ask(function, self.device, ctypes.byref(value))
            answers[name] = value.value
        return answers


class NvidiaSmi(Reader):
    name = "nvidia-smi"

    def __init__(self, uuid: str | None):
        self.program = shutil.which("nvidia-smi")
        if not self.program:
            raise Unavailable("nvidia-smi is not on the PATH")
        self.uuid = uuid
        self.memory()

    def _query(self, what: str, fields: str) -> list[list[str]]:
        command = [self.program, f"--query-{what}={fields}", "--format=csv,noheader,nounits"]
        command += [f"--id={self.uuid}"] if self.uuid else ["--id=0"]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(f"nvidia-smi: {error}") from error
        return [[cell.strip() for cell in line.split(",")]
                for line in answer.stdout.splitlines() if line.strip()]

    def _number(self, text: str) -> int:
        try:
            return int(text)
        except ValueError as error:
            raise Unavailable(f"nvidia-smi said '{text}'") from error

    def _card(self, fields: str) -> list[str]:
        rows = self._query("gpu", fields)
        if len(rows) != 1:
            raise Unavailable(f"nvidia-smi gave {len(rows)} rows for one GPU")
        return rows[0]

    def processes(self):
        rows = self._query("compute-apps", "pid,used_gpu_memory")
        return {int(pid): int(mib) * _MIB if mib.isdigit() else None
                for pid, mib in (row for row in rows if len(row) == 2) if pid.isdigit()}

    def memory(self):
        total, used = self._card("memory.total,memory.used")
        return self._number(total) * _MIB, self._number(used) * _MIB

    def driver(self):
        return self._card("driver_version")[0]

    def pcie(self):
        cells = self._card("pcie.link.gen.current,pcie.link.width.current,"
                           "pcie.link.gen.max,pcie.link.width.max")
        return dict(zip(_PCIE, map(self._number, cells)))


def _known(value) -> int | None:
    return None if value is None or value >= _NOT_AVAILABLE else int(value)


def open_reader(uuid: str | None, kinds=(Pynvml, Library, NvidiaSmi)) -> Reader | None:
    """The first reader that works for the GPU with this UUID (None: the first GPU), or None."""
    for kind in kinds:
        try:
            return kind(uuid)
        except Unavailable:
            continue
    return None


class ProcessMemory:
    """Bytes of this process on the device. Make it BEFORE the process touches CUDA.

    Inside a container the driver reports the host's process ids, which this process cannot know, or
    reports nothing. So, in this order:
      process      the entry with our own process id, if it was not there before
      new-process  the one entry that appeared since this object was made
      device-delta device used now - device used when this object was made; true only if nothing else
                   on the GPU changed meanwhile
    Each answer names its method, prefixed by the reader's name. Not `alone`, that is with other jobs
    that start and end meanwhile, only the first is true, and the others are not tried.
    """

    def __init__(self, reader: Reader | None, pid: int | None = None, alone: bool = True):
        self.reader, self.alone = reader, alone
        self.pid = os.getpid() if pid is None else pid
        self.processes_before = self._try("processes")
        memory = self._try("memory")
        self.used_before = memory[1] if memory else None

    def _try(self, question: str):
        try:
            return getattr(self.reader, question)() if self.reader else None
        except Unavailable:
            return None

    def device_used(self) -> int | None:
        memory = self._try("memory")
        return memory[1] if memory else None

    def read(self) -> tuple[int | None, str]:
        """(bytes, method); (None, "unavailable") where no reader answers."""
        before, now = self.processes_before, self._try("processes")
        if before is not None and now is not None:
            new = [pid for pid in now if pid not in before]
            if self.pid in new and now[self.pid] is not None:
                return now[self.pid], f"{self.reader.name}:process"
            if self.alone and len(new) == 1 and now[new[0]] is not None:
                return now[new[0]], f"{self.reader.name}:new-process"
        used = self.device_used() if self.alone else None
        if used is not None and self.used_before is not None:
            return used - self.used_before, f"{self.reader.name}:device-delta"
        return None, "unavailable"
