"""Operators of the other families again, in training under autocast to bfloat16:
operators/autocast.json (see operator_saved.py). Of each family the first case with an operator, or
with attributes of it, that none before had; normalizations have rows of their own. Left out is what
PyTorch refuses under autocast, recurrent networks, for which it asks cuDNN itself, and modules that
autocast would run otherwise than their descriptions say: attention that is called by its internal
name, and conversions to float32 that the float32 case leaves out.
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
REFUSED = "bce"
RUN_OTHERWISE = ("math", "rotary in fp32")  # the beginnings of names


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
            fits = (case.precision, case.mode) == ("fp32", "train") and case.name != REFUSED
            if fits and not case.name.startswith(RUN_OTHERWISE) and not drawn <= seen:
                seen |= drawn
                yield dataclasses.replace(case, name=f"{family}: {case.name}",
                                          precision="amp-bf16")


if __name__ == "__main__":
    operator_saved.main("autocast", cases)
