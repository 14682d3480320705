"""Operators of the other families again, in training under autocast to bfloat16:
operators/autocast.json (see operator_saved.py). Of each family the first case with an operator, or
with attributes of it, that none before had; normalizations have rows of their own. Left out is what
PyTorch refuses under autocast, and recurrent networks, for which it asks cuDNN itself.
"""

import dataclasses

import activation_saved
import arithmetic_saved
import attention_saved
import convolution_saved
import layout_saved
import loss_saved
import operator_saved
import pooling_saved
import resampling_saved

FAMILIES = {"activation": activation_saved, "arithmetic": arithmetic_saved,
            "attention": attention_saved, "convolution": convolution_saved,
            "layout": layout_saved, "loss": loss_saved, "pooling": pooling_saved,
            "resampling": resampling_saved}
REFUSED = ("bce",)  # binary_cross_entropy: "unsafe to autocast"


def operators(case):
    """Each layer's operator with the names of its attributes."""
    import yaml

    for written in [*case.layers, case.loss_layer]:
        layer = yaml.safe_load(written)
        (operator, attributes), = layer.items() if isinstance(layer, dict) else [(layer, {})]
        yield operator, tuple(sorted(attributes.keys() - {"name", "from"}))


def cases():
    for family, script in FAMILIES.items():
        seen = set()
        for case in script.cases():
            drawn = set(operators(case))
            if (case.precision, case.mode) == ("fp32", "train") and case.name not in REFUSED and \
                    not drawn <= seen:
                seen |= drawn
                yield dataclasses.replace(case, name=f"{family}: {case.name}",
                                          precision="amp-bf16")


if __name__ == "__main__":
    operator_saved.main("autocast", cases)
