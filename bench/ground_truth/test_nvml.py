"""The three readers against stand-ins for the driver, and what is made of their answers."""

import os
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import nvml

# Written after the C declarations in nvml.h, independently of the ctypes structures under test.
FAKE_LIBRARY = r"""
#include <string.h>
typedef struct { unsigned int pid; unsigned long long used; unsigned int gpu, compute; } Info;
typedef struct { unsigned long long total, free, used; } Memory;
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
  *device = (void *)0x123456789abcULL;
  return strcmp(uuid, "GPU-1") ? 6 : 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) {
  *device = (void *)0x123456789abcULL;
  return index;
}
int nvmlDeviceGetMemoryInfo(void *device, Memory *memory) {
  Memory answer = {1000, 600, 400};
  *memory = answer;
  return device == (void *)0x123456789abcULL ? 0 : 2;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count, Info *infos) {
  Info answer[3] = {{11, 5000000000ULL, -1, -1}, {12, -1ULL, -1, -1}, {13, 7, -1, -1}};
  unsigned int room = *count;
  *count = 3;
  if (room < 3) return 7;
  memcpy(infos, answer, sizeof answer);
  return device == (void *)0x123456789abcULL ? 0 : 2;
}
int nvmlSystemGetDriverVersion(char *text, unsigned int length) {
  strncpy(text, "580.1", length);
  return 0;
}
int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned int *value) { *value = 1; return 0; }
int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned int *value) { *value = 8; return 0; }
int nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned int *value) { *value = 5; return 0; }
int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned int *value) { *value = 16; return 0; }
"""

FAKE_SMI = r"""#!/bin/sh
case "$*" in
  *compute-apps*) printf '11, 4768\n12, [N/A]\n' ;;
  *memory.total*) echo '24576, 4900' ;;
  *driver_version*) echo '580.1' ;;
  *pcie*) echo '1, 8, 5, 16' ;;
esac
"""

PCIE = {"generation": 1, "width": 8, "max_generation": 5, "max_width": 16}


class Library(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        compiler = shutil.which("gcc") or shutil.which("cc")
        if not compiler:
            raise unittest.SkipTest("no C compiler")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = os.path.join(folder.name, "fake.so")
        subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", cls.path],
                       input=FAKE_LIBRARY, text=True, check=True)

    def test_reads_what_the_c_side_wrote(self):
        for uuid in ("GPU-1", None):
            reader = nvml.Library(uuid, self.path)
            self.assertEqual(reader.processes(), {11: 5_000_000_000, 12: None, 13: 7})
            self.assertEqual(reader.memory(), (1000, 400))
            self.assertEqual((reader.driver(), reader.pcie()), ("580.1", PCIE))

    def test_an_unknown_gpu_or_library_is_unavailable(self):
        with self.assertRaisesRegex(nvml.Unavailable, "returned 6"):
            nvml.Library("GPU-2", self.path)
        with self.assertRaises(nvml.Unavailable):
            nvml.Library(None, "no-such-library.so")


class OtherReaders(unittest.TestCase):
    def test_nvidia_smi(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "nvidia-smi")
            with open(program, "w", encoding="utf-8") as file:
                file.write(FAKE_SMI)
            os.chmod(program, 0o755)
            with mock.patch.dict(os.environ, PATH=folder + os.pathsep + os.environ["PATH"]):
                reader = nvml.NvidiaSmi("GPU-1")
                self.assertEqual(reader.processes(), {11: 4768 << 20, 12: None})
                self.assertEqual(reader.memory(), (24576 << 20, 4900 << 20))
                self.assertEqual((reader.driver(), reader.pcie()), ("580.1", PCIE))

    def test_pynvml(self):
        entry = types.SimpleNamespace
        fake = types.SimpleNamespace(
            nvmlInit=lambda: None, nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
            nvmlDeviceGetComputeRunningProcesses=lambda device: [
                entry(pid=11, usedGpuMemory=5), entry(pid=12, usedGpuMemory=None)],
            nvmlDeviceGetMemoryInfo=lambda device: entry(total=9, used=4, free=5),
            nvmlSystemGetDriverVersion=lambda: b"580.1")
        with mock.patch.dict(sys.modules, pynvml=fake):
            reader = nvml.Pynvml("GPU-1")
            self.assertEqual(reader.processes(), {11: 5, 12: None})
            self.assertEqual((reader.memory(), reader.driver()), ((9, 4), "580.1"))
            with self.assertRaises(nvml.Unavailable):
                reader.pcie()

    def test_the_first_that_works_is_taken(self):
        class Absent(nvml.Reader):
            def __init__(self, uuid):
                raise nvml.Unavailable("no")

        class Present(nvml.Reader):
            def __init__(self, uuid):
                self.uuid = uuid

        self.assertEqual(nvml.open_reader("GPU-1", (Absent, Present)).uuid, "GPU-1")
        self.assertIsNone(nvml.open_reader("GPU-1", (Absent,)))


class Scripted(nvml.Reader):
    """Answers processes and device use from lists, one entry a reading; None stands for no answer."""

    name = "scripted"

    def __init__(self, processes, used):
        self.script = {"processes": list(processes), "used": list(used)}

    def _next(self, name):
        answer = self.script[name].pop(0)
        if answer is None:
            raise nvml.Unavailable(name)
        return answer

    def processes(self):
        return self._next("processes")

    def memory(self):
        return 1000, self._next("used")


class ProcessMemory(unittest.TestCase):
    def read(self, processes, used):
        return nvml.ProcessMemory(Scripted(processes, used), pid=7).read()

    def test_own_entry(self):
        self.assertEqual(self.read([{1: 50}, {1: 50, 7: 30}], [50]), (30, "scripted:process"))

    def test_in_a_container_the_one_new_entry_is_ours(self):
        self.assertEqual(self.read([{1: 50}, {1: 50, 4711: 30}], [50]), (30, "scripted:new-process"))

    def test_someone_elses_entry_with_our_number_is_not_ours(self):
        self.assertEqual(self.read([{7: 50}, {7: 50, 4711: 30}], [50]), (30, "scripted:new-process"))

    def test_otherwise_the_difference_of_the_device(self):
        delta = (35, "scripted:device-delta")
        for now in ({}, {1: 50}, {1: 50, 8: 1, 9: 2}, {1: 50, 7: None}, None):
            self.assertEqual(self.read([{1: 50}, now], [50, 85]), delta, now)

    def test_beside_other_jobs_only_the_own_entry_is_believed(self):
        read = lambda now: nvml.ProcessMemory(Scripted([{1: 50}, now], [50, 85]), pid=7,
                                              alone=False).read()
        self.assertEqual(read({1: 50, 7: 30, 8: 20}), (30, "scripted:process"))
        for now in ({1: 50, 8: 20}, {1: 50}, {1: 50, 7: None}, None):
            self.assertEqual(read(now), (None, "unavailable"), now)

    def test_no_answer_is_no_figure(self):
        self.assertEqual(self.read([None, None], [50, None]), (None, "unavailable"))
        self.assertEqual(self.read([None, None], [None, 85]), (None, "unavailable"))
        self.assertEqual(nvml.ProcessMemory(None).read(), (None, "unavailable"))


if __name__ == "__main__":
    unittest.main()
