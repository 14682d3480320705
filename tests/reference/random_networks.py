"""Small random networks of every operator, built twice: as a description and as a PyTorch module.

    venv/bin/python tests/reference/random_networks.py --count 100 --seed 1 networks/1.json
    STOWAGE_NETWORKS=networks build/tests/estimator_tests -tc="random networks*"

Each row is one of operator_saved.py's. The module is built by these scripts alone, from the very
choices that the description is written from, so that nothing of ours is trusted. A network starts
with a layer that has parameters, so that what follows needs gradients; then come operators drawn at
random, with attributes drawn at random, that suit the shape at hand; some join two branches. Its
format is drawn too (float32, float16, bfloat16, or autocast to one of them), its loss, and whether
it is trained.

The committed samples are operators/random.json (`--seed 5001 --count 100`, and `--also` the seeds of
networks that once disagreed) and operators/random_selections.json (`--selections --seed 20001
--count 80 --also 20096 20118 20135 20280 20287 30101 30307 30485 30490 30291`), and
operators/random_additions.json (`--additions --seed 40001 --count 60 --also 43032 43037 43060`).
"""

import argparse
import dataclasses
import gc
import pathlib
import platform

import channels_last_saved
import fake_cuda
import operator_saved
import random_additions
import random_elements
import random_selections
import random_sequences
import random_shapes
import random_windows
from random_builder import Builder, elements

PRECISIONS = ["fp32"] * 12 + ["bf16"] * 3 + ["fp16"] + ["amp-bf16"] * 3 + ["amp-fp16"]
# Weighed by what suits most shapes.
OPERATORS = [*random_windows.DRAWN, *random_elements.DRAWN, *random_shapes.DRAWN,
             *random_sequences.DRAWN]


def first_layer(b):
    kind = b.one_of("vector", "sequence", "sequence", "tokens", "image", "image", "image", "volume")
    if kind == "tokens":
        length = b.one_of(4, 7, 9)
        b.add_input("x", ["batch", length], "int64")
        random_sequences.embedding(b, "x", length)
        return
    shape = {"vector": (6,), "sequence": (b.one_of(4, 6), 8), "image": (4, 9, 8),
             "volume": (2, 5, 4, 6)}[kind]
    b.current = b.add_input("x", ["batch", *shape], value_shape=shape)
    if len(shape) > 1 and b.chance(0.6):
        random_windows.convolution(b)
    else:
        random_shapes.linear(b)


def residual(b):
    """One or two layers, and what they read added to their result."""
    start = b.current
    for _ in range(b.number(1, 2)):
        b.one_of(*random_elements.DRAWN, random_windows.same_convolution)(b)
    if b.current != start and start in b.free and b.shapes[start] == b.shape:
        random_elements.combine(b, b.one_of("add", "add", "mul"), start)


FAMILIES = {"selections": random_selections, "additions": random_additions}


def random_case(seed, family=None):
    """A Case of up to ten operators, and its end; of those of a `family` about half."""
    import random_losses

    further = FAMILIES[family].DRAWN if family else []
    times = 8 if family == "additions" else 4
    operators = OPERATORS + further * times
    b = Builder(seed)
    b.precision, b.mode = b.one_of(*PRECISIONS), b.one_of(*["train"] * 11, "inference")
    first_layer(b)
    for _ in range(b.number(2, 9)):
        if elements(b.shape) > 4000 or len(b.shape) > 4:
            break
        b.one_of(*operators, residual, residual)(b)
    if b.chance(0.8):
        random_shapes.linear(b)
    elif "." in b.current:  # the loss reads the last layer, not one of its outputs
        random_shapes.identity(b)
    end = random_losses.ending(b)
    name = f"random {seed}{f' with {family}' if family else ''}"
    return operator_saved.Case(name, b.inputs, b.lines(), b.network, target=end.target,
                               loss=end.loss, loss_layer=end.loss_layer, batch=b.one_of(2, 3),
                               mode=b.mode, precision=b.precision)


def recorded(seeds, layout, family=None):
    """(rows, networks that PyTorch refused)"""
    rows, refused = [], 0
    for seed in seeds:
        case = dataclasses.replace(random_case(seed, family), layout=layout)
        if layout == "nhwc" and not channels_last_saved.has_image(case):
            continue
        try:
            with fake_cuda.fake_cuda():
                rows.append(operator_saved.record(case))
        except Exception as error:  # what PyTorch itself refuses is no network
            refused += 1
            print(f"{case.name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
        gc.collect()
    return rows, refused


def import_whole_libraries():
    """What the layers import when they are made."""
    import timm.layers
    import timm.models.swin_transformer
    import torchvision.models.swin_transformer
    import torchvision.ops
    import transformers.integrations.sdpa_attention
    import transformers.models.llama.modeling_llama
    import transformers.models.t5.modeling_t5

    return timm, torchvision, transformers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="of the first network")
    parser.add_argument("--also", type=int, nargs="*", default=[], help="further seeds")
    parser.add_argument("--layout", choices=("nchw", "nhwc"), default="nchw",
                        help="nhwc: with channels last, and only networks that have an image")
    for family in FAMILIES:
        parser.add_argument(f"--{family}", action="store_const", dest="family", const=family,
                            help=f"half of the operators are those of random_{family}.py")
    parser.add_argument("file", type=pathlib.Path)
    options = parser.parse_args()
    fake_cuda.relaunch_with_shim()

    import json_format
    import torch

    torch.set_num_threads(1)
    import_whole_libraries()
    gc.freeze()  # what is there stays: the many collections need not look at it
    rows, refused = recorded([*range(options.seed, options.seed + options.count), *options.also],
                             options.layout, options.family)
    json_format.write(options.file, {
        "schema_version": 1,
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "rows": rows})
    print(f"{len(rows)} networks, {refused} that PyTorch refused")


if __name__ == "__main__":
    main()
