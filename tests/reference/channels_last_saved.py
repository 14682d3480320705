"""The other scripts' cases with channels innermost: operators/channels_last.json (see
operator_saved.py). Only those that an image or a volume passes through; what PyTorch itself refuses
there (a `view` of a tensor that does not lie so) is named under `refused`."""

import dataclasses
import re

import operator_saved

def has_image(case):
    """Whether an input or a layer of the case has four axes or five."""
    shapes = [spec if isinstance(spec, str) else spec[0] for spec in case.inputs.values()]
    return (any(shape.count(",") in (3, 4) for shape in shapes)
            or any(re.match(r"\w+[23]d", layer) for layer in case.layers))


def cases():
    import activation_saved
    import arithmetic_saved
    import convolution_saved
    import layout_saved
    import loss_saved
    import normalization_saved
    import pooling_saved
    import resampling_saved
    import views_saved

    for family in (convolution_saved, pooling_saved, normalization_saved, resampling_saved,
                   layout_saved, views_saved, activation_saved, arithmetic_saved, loss_saved):
        for case in family.cases():
            if has_image(case):
                yield dataclasses.replace(case, name=f"{case.name}, nhwc", layout="nhwc")


if __name__ == "__main__":
    operator_saved.main("channels_last", cases, refusal="Cannot view a tensor")
