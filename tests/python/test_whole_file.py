"""Output files: links are followed, devices and pipes are written into, and all else is refused."""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import unittest

from stowage.errors import StowageError
from stowage.whole_file import check_place, write_whole

PACKAGE = str(pathlib.Path(__file__).parent.parent.parent / "python")


class WholeFile(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(contextlib.chdir(self.folder))

    def refusal(self, path: str) -> str:
        with self.assertRaises(StowageError) as raised:
            check_place(path)
        return str(raised.exception)

    def put(self, path: str, text: str) -> None:
        check_place(path)
        write_whole(path, text)

    def test_a_file_takes_the_place_of_an_older_one_with_its_mode(self) -> None:
        path = pathlib.Path("s.json")
        path.write_text("older")
        path.chmod(0o640)
        self.put("s.json", "newer")
        self.assertEqual((path.read_text(), stat.S_IMODE(path.stat().st_mode)), ("newer", 0o640))
        self.assertEqual(os.listdir(), ["s.json"])

    def test_a_link_stays_and_its_target_is_replaced(self) -> None:
        os.mkdir("far")
        os.symlink("far/second", "first")
        os.symlink("target.json", "far/second")
        self.put("first", "once")
        self.put("first", "twice")
        self.assertEqual(pathlib.Path("far/target.json").read_text(), "twice")
        self.assertTrue(os.path.islink("first") and os.path.islink("far/second"))
        self.assertEqual(sorted(os.listdir("far")), ["second", "target.json"])

    def test_links_without_an_end_are_refused(self) -> None:
        os.symlink("b", "a")
        os.symlink("a", "b")
        self.assertEqual(self.refusal("a"), "a: Too many levels of symbolic links")
        os.symlink("nowhere/file", "c")
        self.assertEqual(self.refusal("c"),
                         f"c: there is no folder '{os.path.realpath(self.folder)}/nowhere'")

    def test_a_pipe_is_written_into(self) -> None:
        os.mkfifo("pipe")
        found: list[str] = []
        reader = threading.Thread(target=lambda: found.append(pathlib.Path("pipe").read_text()))
        reader.start()
        self.put("pipe", "through")
        reader.join(timeout=30)
        self.assertEqual(found, ["through"])
        self.assertTrue(stat.S_ISFIFO(os.stat("pipe").st_mode))

    def test_a_device_is_written_into(self) -> None:
        self.put("/dev/null", "gone")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        os.symlink("/dev/null", "link")
        self.put("link", "gone")
        self.assertTrue(os.path.islink("link"))
        if os.geteuid() != 0:
            return
        with contextlib.suppress(PermissionError):  # of a container without that right
            os.mknod("device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
            self.put("device", "gone")
            self.assertTrue(stat.S_ISCHR(os.stat("device").st_mode))
        with contextlib.suppress(PermissionError):
            os.mknod("disk", stat.S_IFBLK | 0o600, os.makedev(7, 250))
            self.assertEqual(self.refusal("disk"), "disk is a block device\n  name a file")

    def test_a_socket_and_a_folder_are_refused(self) -> None:
        with socket.socket(socket.AF_UNIX) as own:
            own.bind("socket")
            self.assertEqual(self.refusal("socket"), "socket is a socket\n  name a file")
        self.assertEqual(self.refusal("."), ". is a folder\n  name a file in it")

    def test_stdout_is_written_into_whatever_it_is(self) -> None:
        program = ("import sys; sys.path.insert(0, sys.argv[1])\n"
                   "from stowage.whole_file import check_place, write_whole\n"
                   "print('before', flush=True); check_place('/dev/stdout')\n"
                   "write_whole('/dev/stdout', 'content\\n'); print('after')")
        words = [sys.executable, "-c", program, PACKAGE]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "before\ncontent\nafter\n")
        with open("out.txt", "w") as file:
            subprocess.run(words, stdout=file, check=True)
        self.assertEqual(pathlib.Path("out.txt").read_text(), "before\ncontent\nafter\n")

    def test_names_that_no_file_has(self) -> None:
        self.assertEqual(self.refusal("a\0b"), "'a\\x00b' is no name of a file")
        self.assertEqual(self.refusal("\ud800.json"), "'\\ud800.json' is no name of a file")
        self.assertEqual(self.refusal(""), "'' is no name of a file")

    def test_half_of_a_surrogate_pair_is_not_written(self) -> None:
        with self.assertRaises(StowageError) as raised:
            write_whole("s.yaml", "name: \ud800")
        self.assertEqual(str(raised.exception),
                         "s.yaml: the text has half of a surrogate pair, \\ud800, which UTF-8 "
                         "cannot hold\n"
                         "  nothing was written")
        self.assertEqual(os.listdir(), [])


if __name__ == "__main__":
    unittest.main()
