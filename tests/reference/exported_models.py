#!/usr/bin/env python3
"""Write exported_models.json: models through `python -m stowage export`, held against PyTorch.

    python exported_models.py                        all of MODELS, half an hour on one core
    python exported_models.py --rows rows.jsonl      rows are kept there: a run goes on where it was cut off
    python exported_models.py --models timm:resmlp_12_224
    python exported_models.py --pytorch eager.jsonl  what PyTorch saves is kept there, and not asked again

Each model is exported, the description is lowered by the program (`--stowage`), and three things
are compared: every parameter's shape, tensor by tensor; the storages that the step keeps for its
backward pass, byte by byte, with those that eager PyTorch saves under fake CUDA (saved_tensors.py)
in a training step at batch 2; buffers' bytes. See README.md for the format.
"""

import argparse
import collections
import contextlib
import gc
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import fake_cuda

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
BATCH = 2
# Architectures of timm that the project does not ship, one or two sizes of each.
TIMM = """
bat_resnext26ts beit_base_patch16_224 botnet26t_256 caformer_s18 cait_s24_224 coat_tiny
coatnet_0_224 convformer_s18 convit_tiny convmixer_768_32 convnextv2_tiny crossvit_tiny_240
cs3darknet_m csatv2 cspresnet50 darknet53 davit_tiny deit3_small_patch16_224 dla34 dm_nfnet_f0 dpn68
eca_nfnet_l0 edgenext_small efficientformer_l1 efficientvit_b0 ese_vovnet19b_dw fastvit_t8
focalnet_tiny_srf gcvit_tiny ghostnet_100 gmixer_24_224 hardcorenas_a hgnetv2_b0 hrnet_w18_small
inception_v4 lambda_resnet26t lcnet_100 levit_128 maxvit_tiny_rw_224 mixnet_s mobilenetv3_large_100
mobileone_s1 mobilevit_s mvitv2_tiny nest_tiny nextvit_small nf_resnet50 pit_ti_224 poolformer_s12
pvt_v2_b0 regnetz_040 repvgg_a2 res2net50_26w_4s resmlp_12_224 resnest14d rexnet_100
seresnext50_32x4d skresnet18 tinynet_a tnt_s_patch16_224 tresnet_m twins_pcpvt_small visformer_tiny
vit_small_patch16_rope_224 xcit_tiny_12_p16_224
""".split()


def torchvision_models():
    import torchvision

    return torchvision.models.list_models(torchvision.models)


def sources():
    return [f"torchvision:{name}" for name in torchvision_models()] + [f"timm:{n}" for n in TIMM]


class SourceAsReference:
    """What saved_tensors.collect calls."""

    def __init__(self, source):
        self.source = source

    def loss(self, model, inputs, target):
        output = model(*inputs)
        return output, self.source.loss(output, target)


def saved_by_pytorch(name):
    """Counters of the bytes of storages that the forward pass adds, and of parameters' shapes;
    buffers' bytes. Storages of 0 bytes do not count (cuDNN's reserves, see README.md)."""
    import saved_tensors
    import torch
    from stowage.sources import resolve
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    with fake_cuda.fake_cuda():
        with unset_fake_temporarily():
            source = resolve(name)
        model = fake_cuda.moved_to_fake(source.model.train())
        example = source.example(BATCH)
        on_cuda = lambda t: torch.empty(t.shape, dtype=t.dtype, device="cuda")
        inputs = tuple(on_cuda(t) for t in example.arguments)
        entries, _ = saved_tensors.collect(SourceAsReference(source), model, inputs,
                                           on_cuda(example.target))
        saved = collections.Counter(e["storage_bytes"] for e in entries
                                    if e["kind"] == "other" and e["storage_bytes"])
        shapes = collections.Counter(tuple(p.shape) for p in model.parameters())
        buffers = saved_tensors.element_bytes(model.buffers())
    return saved, shapes, buffers


def measured_before(name, shape):
    """The same from models/compact, where that has the model at this input's shape."""
    path = HERE / "models" / "compact" / f"{name.partition(':')[2]}-b{BATCH}.json"
    if not path.exists():
        return None
    file = json.loads(path.read_text())
    arguments = file["settings"]["arguments"]
    if file["inputs"]["input"]["shape"] != list(shape) or arguments not in ({}, {"aux": True}):
        return None
    saved = collections.Counter()
    for kind, size, count, _ in file["saved_multiset"]:
        if kind == "other" and size:
            saved[size] += count
    shapes = collections.Counter({tuple(s): n for s, n in file["parameter_shapes"]})
    return saved, shapes, file["buffer_bytes"]


class Kept:
    """What PyTorch saves, in a file with a row a model: only the exporter is asked again."""

    def __init__(self, path):
        self.path = pathlib.Path(path) if path else None
        self.rows = {}
        if self.path and self.path.exists():
            for line in self.path.read_text().splitlines():
                row = json.loads(line)
                self.rows[row["model"]] = row

    def of(self, name, shape):
        if name not in self.rows:
            saved, shapes, buffers = measured_before(name, shape) or saved_by_pytorch(name)
            self.rows[name] = {"model": name, "saved": sorted(saved.items()),
                               "shapes": sorted([list(s), n] for s, n in shapes.items()),
                               "buffers": buffers}
            if self.path:
                with open(self.path, "a", encoding="utf-8") as file:
                    file.write(json.dumps(self.rows[name]) + "\n")
        row = self.rows[name]
        return (collections.Counter(dict(map(tuple, row["saved"]))),
                collections.Counter({tuple(s): n for s, n in row["shapes"]}), row["buffers"])


def sized(written, batch):
    """A number of a step file: a constant, or [constant, of the batch]."""
    return written[0] + written[1] * batch if isinstance(written, list) else written


def saved_by_stowage(program, description):
    """The same of a description, from `stowage lower`."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "step.json"
        done = subprocess.run([program, "lower", description, "--batch", str(BATCH), "-o", path],
                              capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().replace(f"{description.parent}/", ""))
        step = json.loads(path.read_text())
    storages = step["step"]["storages"]
    kept = {row[1] for row in step["step"]["saved"]}
    existed = ("parameter", "buffer", "input")
    saved = collections.Counter(sized(storages[k][3], BATCH) for k in kept
                                if storages[k][1] not in existed)
    del saved[0]
    shapes = collections.Counter(tuple(step["shapes"][row[2]]) if isinstance(row[2], int) else
                                 tuple(row[2]) for row in shaped_parameters(step))
    buffers = sum(sized(s[3], BATCH) for s in storages if s[1] == "buffer")
    return saved, shapes, buffers


def shaped_parameters(step):
    """[name, type, shape's number] of learned tensors."""
    return [row for row in step["parameters"] if "buffer" not in row[3:]]


def difference(ours, theirs):
    """What one has more of than the other, at most a few."""
    rows = [f"ours {n} x {key}" for key, n in (ours - theirs).most_common(3)]
    return rows + [f"PyTorch {n} x {key}" for key, n in (theirs - ours).most_common(3)]


def measured(name, program, keep, pytorch):
    from stowage.errors import StowageError
    from stowage.export import export
    from stowage.sources import resolve

    row = {"model": name}
    try:
        source = resolve(name)
        shape = source.example(BATCH).arguments[0].shape
        text = export(source)
    except StowageError as error:
        return {**row, "exported": False, "why": str(error)}
    row.update(exported=True, lines=text.count("\n"))
    path = keep / f"{name.replace(':', '-')}.yaml"
    path.write_text(text)
    ours, theirs = saved_by_stowage(program, path), pytorch.of(name, shape)
    row["parameters"] = sum(theirs[1].values())
    row["parameters_equal"] = ours[1] == theirs[1]
    row["saved_bytes"] = sum(size * n for size, n in theirs[0].items())
    row["saved_equal"] = ours[0] == theirs[0]
    row["buffers_equal"] = ours[2] == theirs[2]
    if not row["parameters_equal"]:
        row["parameters_differ"] = difference(ours[1], theirs[1])
    if not row["saved_equal"]:
        row["saved_bytes_ours"] = sum(size * n for size, n in ours[0].items())
        row["saved_differ"] = difference(ours[0], theirs[0])
    if not row["buffers_equal"]:
        row["buffer_bytes"] = [ours[2], theirs[2]]
    return row


def earlier(path):
    """The rows of a run before."""
    if not path or not pathlib.Path(path).exists():
        return []
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", metavar="SOURCE", help="only these, write nothing")
    parser.add_argument("--stowage", default=str(ROOT / "build" / "stowage"), metavar="PROGRAM")
    parser.add_argument("--keep", metavar="FOLDER", help="where the descriptions go")
    parser.add_argument("--rows", metavar="FILE", help="a row a line, as they are measured")
    parser.add_argument("--pytorch", metavar="FILE", help="what PyTorch saves, kept between runs")
    arguments = parser.parse_args()
    fake_cuda.relaunch_with_shim()
    sys.path.insert(0, str(ROOT / "python"))

    import torch

    torch.set_num_threads(1)
    rows, pytorch = earlier(arguments.rows), Kept(arguments.pytorch)
    done = {row["model"] for row in rows}
    with contextlib.ExitStack() as stack:
        keep = pathlib.Path(arguments.keep or stack.enter_context(tempfile.TemporaryDirectory()))
        keep.mkdir(exist_ok=True)
        for name in [n for n in arguments.models or sources() if n not in done]:
            started = time.monotonic()
            try:
                row = measured(name, arguments.stowage, keep, pytorch)
            except Exception as error:  # say which, go on with the others
                row = {"model": name, "exported": False,
                       "why": f"{type(error).__name__}: {str(error)[:400]}"}
            rows.append(row)
            print(f"{time.monotonic() - started:5.1f} s", json.dumps(row), flush=True)
            if arguments.rows:
                with open(arguments.rows, "a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
            gc.collect()
    if arguments.models:
        return
    import counts
    import json_format

    order = {name: at for at, name in enumerate(sources())}
    rows.sort(key=lambda row: order[row["model"]])
    json_format.write(HERE / "exported_models.json",
                      {"schema_version": 1, "versions": counts.versions(), "batch": BATCH,
                       "models": rows})


if __name__ == "__main__":
    main()
