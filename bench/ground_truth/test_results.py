"""What GPUs measured (results/) against what a built stowage says today: no figure becomes worse unseen."""

import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import compare
import measured
import predicted
import stowage
import tuning_compare

LEAST = 0.01  # of what was measured
# Beyond it, with the reason. Named by words of the case's key.
TOO_LOW = {("base=int8", "group=quantised;"): "columns with outliers, by the values (docs/fine-tuning.md)"}
TOO_HIGH = {("group=inference", "gpt2", "amp-bf16"): "copies of weights that inference_mode does not keep"}


def path_of(card: str, name: str) -> str:
    return os.path.join(HERE, "results", card, name)


def is_named(key: str, exceptions: dict[tuple[str, ...], str]) -> bool:
    return any(all(word in key for word in words) for words in exceptions)


class Results(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.path = stowage.find_program(None)
        except stowage.NoProgram as absent:
            raise unittest.SkipTest(str(absent)) from None

    def check(self, key: str, error: float) -> None:
        if error < -LEAST:
            self.assertTrue(is_named(key, TOO_LOW), f"{100 * error:+.2f} percent: {key}")
        if error > LEAST:
            self.assertTrue(is_named(key, TOO_HIGH), f"{100 * error:+.2f} percent: {key}")

    def test_bytes_asked_for_in_fine_tuning_serving_and_inference(self):
        for card, gpu in (("h100-sxm5-80gb", "h100 sxm5"), ("h200", "h200")):
            with open(path_of(card, "fine_tuning.json"), encoding="utf-8") as file:
                content = json.load(file)
            rows, answers, records = tuning_compare.report(content, stowage.Program(self.path, gpu), None)
            # Where cuDNN is not installed, workspaces of convolutions are by a rule.
            pairs = [(row.key, row.pairs["requested"]) for row in rows
                     if "requested" in row.pairs and row.group != "vision"]
            self.assertGreater(len(pairs), len(records) * 0.9)
            for key, pair in pairs:
                self.check(key, pair.error)

    def test_bytes_asked_for_in_training_steps_without_convolutions_workspaces(self):
        for card, name, gpu in (("h100-sxm5-80gb", "full.json", "h100 sxm5"),
                                ("h200", "precisions.json", "h200"), ("h200", "optimizers.json", "h200")):
            source = measured.load(path_of(card, name))
            rows = [row for row in source.rows if row.job.family() != "convolutional"]
            self.assertGreater(len(rows), 20)
            for row in predicted.compare_all(stowage.Program(self.path, gpu), rows, in_context=False):
                self.assertIsNone(row.refusal())
                self.check(row.row.job.key(), compare.pair_of(row, compare.FIGURES[0]).error)


if __name__ == "__main__":
    unittest.main()
