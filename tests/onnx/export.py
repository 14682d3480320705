"""Exports PyTorch models to ONNX, without their weights.

    python3 tests/onnx/export.py FOLDER [NAME...]

Without names all of them. Measured with torch 2.15, torchvision, transformers and onnx 1.23 (docs/onnx.md has
the table of what check says of them beside the project's own descriptions). torchvision's models are exported
in training mode by the tracing exporter, which leaves normalization and dropout in the graph; transformers' by
torch.export (dynamo=True), with open batch and sequence. Weights of more than 256 bytes go to an external file,
which is deleted: a reader of sizes never opens it. tests/onnx keeps those of less than 200 kB that the tests
read: resnet18.
"""

import pathlib
import sys
import warnings

import onnx
import torch

TORCHVISION = """alexnet vgg11 vgg16_bn squeezenet1_0 densenet121 resnet18 resnet50 wide_resnet50_2
resnext50_32x4d mobilenet_v2 mobilenet_v3_small efficientnet_b0 convnext_tiny googlenet inception_v3 vit_b_16
swin_t mnasnet1_0 regnet_y_400mf shufflenet_v2_x1_0""".split()
TRANSFORMERS = ["gpt2", "bert-base", "distilbert"]
SMALLEST_EXTERNAL_BYTES = 256


def export_torchvision(name, path):
    import torchvision

    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    model = getattr(torchvision.models, name)(**options).train()
    size = 299 if name == "inception_v3" else 224
    torch.onnx.export(
        model, (torch.randn(2, 3, size, size),), path, dynamo=False, do_constant_folding=False,
        training=torch.onnx.TrainingMode.TRAINING, input_names=["image"], output_names=["output"],
        dynamic_axes={"image": {0: "batch"}})


def export_transformers(name, path):
    import transformers

    if name == "gpt2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
    elif name == "bert-base":
        model = transformers.BertForMaskedLM(transformers.BertConfig())
    else:
        model = transformers.DistilBertForMaskedLM(transformers.DistilBertConfig())
    model.config.use_cache = False

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids):
            return self.model(input_ids=input_ids).logits

    batch, seq = torch.export.Dim("batch", max=1024), torch.export.Dim("seq", min=2, max=512)
    program = torch.onnx.export(
        Logits().eval(), (torch.zeros(2, 16, dtype=torch.long),), dynamo=True, optimize=True, verbose=False,
        dynamic_shapes=({0: batch, 1: seq},), input_names=["input_ids"], output_names=["logits"])
    program.save(path)


def strip_weights(path):
    model = onnx.load(path)
    data = path.with_suffix(".weights")
    onnx.save_model(model, path, save_as_external_data=True, location=data.name,
                    size_threshold=SMALLEST_EXTERNAL_BYTES)
    for left in (data, pathlib.Path(f"{path}.data")):
        left.unlink(missing_ok=True)


def main():
    warnings.filterwarnings("ignore")
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or TORCHVISION + TRANSFORMERS:
        path = folder / f"{name}.onnx"
        (export_transformers if name in TRANSFORMERS else export_torchvision)(name, path)
        strip_weights(path)
        print(name, path.stat().st_size)


if __name__ == "__main__":
    main()
