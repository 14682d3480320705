#!/usr/bin/env python3
"""Pages that `--report` writes, opened in a headless Chromium: what they show is what `--format json`
says, keys and the pointer work, and nothing is asked for.

    tests/pages/pages_test.py [PROGRAM]     77: there is no Chromium here
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from typing import Any

from browser import Browser, find_browser

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTILE = """model: "</script><img src=x onerror=alert(1)>"
inputs:
  x: {shape: [batch, 4]}
  label: {shape: [batch], dtype: int64}
layers:
  - linear: {name: fc, from: x, features: 4}
loss:
  cross_entropy: {from: [fc, label]}
"""
SIZES = {"narrow": (390, 800), "wide": (1280, 900)}

program = str(ROOT / "build/stowage")


def bytes_text(count: int) -> str:
    """As the program prints sizes."""
    if abs(count) < 1024:
        return f"{count} B"
    value, unit = float(count), 0
    while abs(value) >= 1023.95:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'][unit]}"


class PageTest(unittest.TestCase):
    browser: Browser
    folder: tempfile.TemporaryDirectory[str]

    @classmethod
    def setUpClass(cls) -> None:
        found = find_browser()
        assert found
        cls.browser = Browser(found)
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.browser.close()
        cls.folder.cleanup()

    def shown(self, *words: str, size: str = "wide", scheme: str = "light",
              exit_code: int = 0) -> dict[str, Any]:
        """Opens the page of the command; its JSON."""
        page = pathlib.Path(self.folder.name) / "page.html"
        run = subprocess.run([program, *words, "--format", "json", "--report", str(page)],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, exit_code, run.stderr)
        self.browser.show(*SIZES[size], scheme)
        self.browser.open(page)
        self.assertEqual(self.browser.errors, [])
        self.assertEqual(self.browser.requests, [page.resolve().as_uri()])
        answer: dict[str, Any] = json.loads(run.stdout)
        return answer

    def value(self, expression: str) -> Any:
        return self.browser.value(expression)

    def rows(self, selector: str, *attributes: str) -> list[list[str]]:
        """Attributes of all that the selector finds."""
        found: list[list[str]] = self.value(
            f"[...document.querySelectorAll({json.dumps(selector)})].map((row) => "
            f"{json.dumps(attributes)}.map((name) => row.getAttribute(name)))")
        return found

    def figures(self) -> dict[str, tuple[str, str]]:
        """Each by its name in JSON: the value, and what is read."""
        found = self.value("[...document.querySelectorAll('[data-figure]')].map((one) => "
                           "[one.dataset.figure, one.dataset.value, one.lastChild.textContent])")
        return {name: (value, text) for name, value, text in found}

    def counts(self, selector: str, name: str, count: str = "data-bytes") -> dict[str, int]:
        """Rows by their name, each with a number."""
        return {row: int(number) for row, number in self.rows(selector, name, count)}

    def texts(self, selector: str) -> list[str]:
        found: list[str] = self.value(
            f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)")
        return found

    def click(self, selector: str, text: str) -> None:
        """On the first that the selector finds and that begins with the text."""
        self.value(f"[...document.querySelectorAll({json.dumps(selector)})]"
                   f".find((one) => one.textContent.startsWith({json.dumps(text)})).click()")

    def node_names(self) -> list[str]:
        names: list[str] = self.value(
            "JSON.parse(document.getElementById('data').textContent).memory.node_names")
        return names

    def check_bytes(self, name: str, count: int) -> None:
        self.assertEqual(self.figures()[name], (str(count), bytes_text(count)))

    def at_cursor(self) -> tuple[int, int]:
        """The kernel that the cursor is at, and what is live then."""
        node, live = self.rows("#memory .at", "data-node", "data-live")[0]
        return int(node), int(live)

    def check_peak(self, footprint: dict[str, int]) -> None:
        shown = self.counts("#memory .at tr[data-class]", "data-class")
        self.assertEqual(shown, {name: count for name, count in footprint.items() if count})

    def test_check(self) -> None:
        answer = self.shown("check", "resnet18", "--gpu", "t4", "--batch", "32")
        self.assertEqual(self.rows("#verdict", "data-verdict"), [["fits"]])
        self.check_bytes("device_bytes", answer["device_bytes"])
        for name in ("tensor_bytes", "reserved_bytes"):
            self.check_bytes(name, answer["peak"][name])
        self.check_bytes("available_bytes", answer["device"]["available_bytes"])
        self.assertEqual(self.figures()["at"][1], answer["peak"]["at"])
        self.check_peak(answer["footprint"])
        self.assertEqual(self.at_cursor()[1], answer["peak"]["tensor_bytes"])
        parts = self.counts("#card-memory [data-part]", "data-part")
        self.assertEqual(sum(parts.values()), answer["device"]["total_bytes"])
        for row in answer["runtime_rows"]:
            self.assertEqual(parts[row["name"]], row["bytes"])
        curve = self.counts("#curve tr[data-batch]", "data-batch")
        self.assertEqual(curve["32"], answer["device_bytes"])
        self.assertIn("on the device", self.texts("#as-text pre")[0])
        notes = self.texts("ul.notes li")
        self.assertEqual(len(notes), len(answer["notes"]))
        for note, shown in zip(answer["notes"], notes):
            self.assertIn(note["message"], shown)

    def test_check_that_does_not_fit(self) -> None:
        answer = self.shown("check", "resnet18", "--gpu", "t4", "--batch", "4096", size="narrow",
                            scheme="dark", exit_code=1)
        self.assertEqual(self.rows("#verdict", "data-verdict"), [["does_not_fit"]])
        self.assertIn(bytes_text(-answer["headroom_bytes"]) + " too much", self.texts("#verdict")[0])
        self.check_bytes("device_bytes", answer["device_bytes"])
        too_much = self.value("[...document.querySelectorAll('#curve tr[data-batch]')].map((row) => "
                              "[+row.dataset.bytes, row.textContent.endsWith('too much')])")
        for count, is_too_much in too_much:
            self.assertEqual(is_too_much, count > answer["device"]["available_bytes"])

    def test_keys(self) -> None:
        answer = self.shown("check", "mlp", "--gpu", "t4", "--batch", "32")
        peak, _ = self.at_cursor()
        stops = []
        for _ in range(12):
            self.browser.press("Tab")
            stops.append(self.value("document.activeElement.id || document.activeElement.className || "
                                    "document.activeElement.tagName"))
        self.assertEqual(stops[:3], ["skip", "colours", "step-memory"])
        outline = ("getComputedStyle(document.activeElement).outlineStyle + "
                   "getComputedStyle(document.activeElement).outlineWidth")
        self.value("document.getElementById('step-memory').focus()")
        self.browser.press("Home")
        self.assertEqual(self.value(outline), "solid3px")
        self.assertEqual(self.at_cursor()[0], 0)
        self.browser.press("ArrowRight")
        self.assertEqual(self.at_cursor()[0], 1)
        self.assertEqual(self.rows("#step-memory", "aria-valuenow"), [["2"]])
        self.browser.press("ArrowLeft")
        self.browser.press("ArrowLeft")
        self.assertEqual(self.at_cursor()[0], 0)
        self.browser.press("End")
        self.assertEqual(self.at_cursor()[0], len(self.node_names()) - 1)
        self.browser.press("p")
        self.assertEqual(self.at_cursor(), (peak, answer["peak"]["tensor_bytes"]))
        self.browser.press("ArrowDown")
        self.browser.press("ArrowDown")
        chosen = self.rows("#memory .at tr.chosen", "data-bytes")
        listed = self.rows("#memory .at tr[data-bytes]:not([data-class])", "data-bytes")
        self.assertEqual(chosen, listed[1:2])
        self.browser.press("+")
        self.browser.press("0")
        self.assertEqual(self.browser.errors, [])

    def test_pointer(self) -> None:
        self.shown("check", "resnet18", "--gpu", "t4", "--batch", "32")
        self.value("document.getElementById('memory').scrollIntoView()")
        box = self.value("(({x, y, width, height}) => ({x, y, width, height}))"
                         "(document.getElementById('step-memory').getBoundingClientRect())")
        self.browser.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.6)
        tip = self.value("document.querySelector('#memory .tip').innerText")
        node, live = self.at_cursor()
        self.assertTrue(tip.startswith(f"{self.node_names()[node]}\n{bytes_text(live)} live, "), tip)
        self.assertRegex(tip, r"\n\S+: [0-9.]+ [KMG]iB\n[a-z ]+, \S+, resnet18\.yaml:[0-9]+:[0-9]+\n"
                              r"kernels [0-9]+ to [0-9]+$")

    def test_layers_sort(self) -> None:
        answer = self.shown("check", "resnet18", "--gpu", "t4", "--batch", "32")
        peaks = [int(count) for count, in self.rows("#layers tr[data-layer]", "data-bytes")]
        self.assertEqual(peaks, sorted(peaks, reverse=True))
        self.click("#layers button", "Show all")
        peaks = [int(count) for count, in self.rows("#layers tr[data-layer]", "data-bytes")]
        self.assertEqual(sum(peaks), answer["peak"]["tensor_bytes"])
        self.click("#layers th button", "Parameters")
        cells = self.texts("#layers tr[data-layer] td:nth-child(5)")
        counts = [int(text.replace(",", "")) for text in cells]
        self.assertEqual(counts, sorted(counts, reverse=True))
        self.assertEqual(self.rows("#layers th:nth-child(5)", "aria-sort"), [["descending"]])

    def test_colours(self) -> None:
        ground = "getComputedStyle(document.body).backgroundColor"
        self.shown("check", "mlp", "--gpu", "t4")
        light = self.value(ground)
        self.value("document.getElementById('colours').click()")
        dark = self.value(ground)
        self.assertNotEqual(light, dark)
        self.shown("check", "mlp", "--gpu", "t4", scheme="dark")
        self.assertEqual(self.value(ground), dark)
        self.value("document.getElementById('colours').click()")
        self.assertEqual(self.value(ground), light)

    def test_batch(self) -> None:
        answer = self.shown("batch", "resnet18", "--gpu", "t4")
        figures = self.figures()
        self.assertEqual(figures["recommended"][0], str(answer["recommended"]))
        self.assertEqual(figures["largest"][0], str(answer["largest"]))
        self.check_bytes("recommended_device_bytes", answer["recommended_device_bytes"])
        curve = self.counts("#curve tr[data-batch]", "data-batch")
        for point in answer["curve"]:
            self.assertEqual(curve[str(point["batch"])], point["device_bytes"])
        self.assertEqual(curve[str(answer["recommended"])], answer["recommended_device_bytes"])

    def test_plan(self) -> None:
        frontier = str(pathlib.Path(self.folder.name) / "frontier.csv")
        answer = self.shown("plan", "vgg16", "--gpu", "rtx3060", "--batch", "256", "--frontier", frontier)
        chosen = next(plan for plan in answer["plans"] if plan["name"] == answer["chosen"])
        self.assertEqual([row[0] for row in self.rows("#plans tr[data-plan]", "data-plan")],
                         [plan["name"] for plan in answer["plans"]])
        self.assertEqual(self.rows("#plans tr.chosen", "data-plan"), [[answer["chosen"]]])
        for name in ("arena_bytes", "pcie_bytes", "host_peak_bytes"):
            self.check_bytes(name, chosen[name])
        self.assertEqual(self.at_cursor()[1], chosen["gpu_peak_bytes"])
        step = float(self.rows("#lanes [data-step]", "data-step")[0][0])
        self.assertAlmostEqual(step, chosen["step_seconds"], delta=1e-6)
        self.value("document.getElementById('lanes-chart').focus()")
        before = self.rows("#lanes-chart", "aria-valuetext")
        self.browser.press("ArrowRight")
        self.assertNotEqual(self.rows("#lanes-chart", "aria-valuetext"), before)
        self.browser.press("ArrowDown")
        self.assertTrue(self.rows("#lanes-chart", "aria-valuetext")[0][0].startswith("CPU: "))
        budgets = [[row.split(",")[0]] for row in pathlib.Path(frontier).read_text().splitlines()[1:]]
        self.assertEqual(self.rows("#frontier tr[data-budget]", "data-budget"), budgets)

    def test_plan_for_pytorch(self) -> None:
        answer = self.shown("plan", "resnet50", "--gpu", "rtx3060", "--batch", "256", "--for", "pytorch",
                            size="narrow")
        chosen = next(plan for plan in answer["plans"] if plan["name"] == answer["chosen"])
        for name in ("peak_reserved_bytes", "pcie_bytes", "pinned_bytes"):
            self.check_bytes(name, chosen[name])
        self.assertEqual(self.rows("#plans tr.chosen", "data-plan"), [[answer["chosen"]]])
        self.assertGreater(len(self.rows("#decisions tr[data-bytes]", "data-bytes")), 0)
        step = float(self.rows("#lanes [data-step]", "data-step")[0][0])
        self.assertAlmostEqual(step, chosen["step_seconds"], delta=1e-6)

    def test_hostile_names(self) -> None:
        model = pathlib.Path(self.folder.name) / "hostile.yaml"
        model.write_text(HOSTILE)
        step = model.with_suffix(".json")
        subprocess.run([program, "lower", str(model), "--gpu", "t4", "-o", str(step)], check=True)
        # A description's layers have plain names; a step's file may have any.
        step.write_text(re.sub('"fc(["."])', r'"<b onerror=alert(2)>fc</b>\1', step.read_text()))
        self.shown("check", str(step), "--gpu", "t4")
        self.assertEqual(self.value("document.querySelectorAll('img, b[onerror]').length"), 0)
        self.assertTrue(self.texts("h1")[0].startswith("</script><img src=x onerror=alert(1)>, batch 1"))
        self.assertEqual(self.value("document.querySelectorAll('script').length"), 2)
        self.assertIn(["<b onerror=alert(2)>fc</b>"], self.rows("#layers tr[data-layer]", "data-layer"))

    def test_widths_and_print(self) -> None:
        for size in SIZES:
            self.shown("plan", "vgg16", "--gpu", "rtx3060", "--batch", "256", size=size)
            self.assertLessEqual(self.value("document.documentElement.scrollWidth"), SIZES[size][0])
        printed = self.browser.send("Page.printToPDF", {"printBackground": False})
        self.assertGreater(len(printed["data"]), 10_000)
        self.assertEqual(self.browser.errors, [])

    def test_sizes_of_files(self) -> None:
        for model, most in (("resnet50", 1_000_000), ("gpt2-xl", 2_000_000)):
            self.shown("check", model, "--gpu", "h100-pcie-80gb", "--batch", "4")
            self.assertLess((pathlib.Path(self.folder.name) / "page.html").stat().st_size, most)


if __name__ == "__main__":
    if find_browser() is None:
        print("skipped: there is no Chromium here")
        sys.exit(77)
    if len(sys.argv) > 1:
        program = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
