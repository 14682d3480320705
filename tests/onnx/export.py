"""Exports PyTorch models to ONNX, without their weights.

    python3 tests/onnx/export.py FOLDER [--how HOW] [NAME...]

Without names all of them. HOW is one of

    traced     torch.onnx.export(dynamo=False) in training mode: normalization and dropout stay in the graph
    exported   dynamo=True of a model in training mode, optimize=False, which leaves normalization in it
    default    dynamo=True of a model in evaluation mode, as torch.onnx.export does it without any option
    opset11    as `traced`, in the opset of older files

and "all" is what measure.py takes. Batch is open in all of them, the sequence too. GoogLeNet is traced without its
auxiliary heads, whose pooling of 14 by 14 to 4 by 4 that exporter refuses. transformers' models are traced with an
attention mask: without one they look for packed sequences by aten::diff, which that exporter refuses too. Weights of
more than 256 bytes go to an external file, which is deleted: a reader of sizes never opens it. tests/onnx keeps
those that the tests read: resnet18.onnx is traced.
"""

import argparse
import pathlib
import warnings

import onnx
import torch

TORCHVISION = """alexnet vgg11 vgg16 vgg16_bn squeezenet1_0 densenet121 resnet18 resnet50 wide_resnet50_2
resnext50_32x4d mobilenet_v2 mobilenet_v3_small mobilenet_v3_large efficientnet_b0 convnext_tiny googlenet
inception_v3 vit_b_16 swin_t mnasnet1_0 regnet_x_400mf regnet_y_400mf shufflenet_v2_x1_0""".split()
TRANSFORMERS = ["gpt2", "bert-base", "distilbert-base", "t5-small", "small-llama", "small-gpt2"]
HOWS = ["traced", "exported", "default", "opset11"]
SMALLEST_EXTERNAL_BYTES = 256
HERE = pathlib.Path(__file__).parent


class Outputs(torch.nn.Module):
    """GoogLeNet's and Inception's outputs as a plain tuple, without what is None."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, image):
        output = self.inner(image)
        return output if isinstance(output, torch.Tensor) else tuple(o for o in output if o is not None)


def torchvision_model(name, how):
    import torchvision

    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    if name == "googlenet" and how != "exported":
        options["aux_logits"] = False
    model = getattr(torchvision.models, name)(**options)
    size = 299 if name == "inception_v3" else 224
    return (Outputs(model) if options else model), (torch.randn(2, 3, size, size),)


def transformers_model(name):
    import transformers

    config = HERE.parent / "hf" / name / "config.json"  # of those that are the project's own
    if name == "gpt2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
    elif name == "bert-base":
        model = transformers.BertForMaskedLM(transformers.BertConfig())
    elif name == "distilbert-base":
        model = transformers.DistilBertForMaskedLM(transformers.DistilBertConfig())
    elif name == "t5-small":
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(
            d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8, vocab_size=32128))
    else:
        model = transformers.AutoModelForCausalLM.from_config(
            transformers.AutoConfig.from_pretrained(config.parent))
    model.config.use_cache = False
    for parameter in model.parameters():  # the exporter makes one of equal weights, such as zeros
        torch.nn.init.normal_(parameter)
    return model


class Logits(torch.nn.Module):
    def __init__(self, model, masked):
        super().__init__()
        self.model = model
        self.masked = masked

    def forward(self, input_ids, second=None):
        if self.model.config.is_encoder_decoder:
            return self.model(input_ids=input_ids, decoder_input_ids=second, use_cache=False).logits
        if self.masked:
            return self.model(input_ids=input_ids, attention_mask=second).logits
        return self.model(input_ids=input_ids).logits


def transformers_inputs(model, how):
    """The module, its inputs and their names."""
    tokens = torch.zeros(2, 16, dtype=torch.long)
    masked = how in ("traced", "opset11")
    inner = Logits(model, masked)
    if model.config.is_encoder_decoder:
        return inner, (tokens, tokens.clone()), ["input_ids", "decoder_input_ids"]
    if masked:
        return inner, (tokens, torch.ones_like(tokens)), ["input_ids", "attention_mask"]
    return inner, (tokens,), ["input_ids"]


def export(name, how, path):
    if name in TRANSFORMERS:
        model, inputs, names = transformers_inputs(transformers_model(name), how)
        axes = {0: "batch", 1: "seq"}
    else:
        (model, inputs), names = torchvision_model(name, how), ["image"]
        axes = {0: "batch"}
    model = model.eval() if how == "default" else model.train()
    if how in ("traced", "opset11"):
        torch.onnx.export(
            model, inputs, path, dynamo=False, do_constant_folding=False,
            training=torch.onnx.TrainingMode.TRAINING, input_names=names, output_names=["output"],
            opset_version=11 if how == "opset11" else None,
            dynamic_axes={one: axes for one in names})
        return
    batch, seq = torch.export.Dim("batch", max=1024), torch.export.Dim("seq", min=2, max=512)
    shapes = tuple({0: batch, 1: seq} if 1 in axes else {0: batch} for _ in inputs)
    if name in TRANSFORMERS and len(shapes) == 1:
        shapes += (None,)
        inputs += (None,)
    program = torch.onnx.export(
        model, inputs, dynamo=True, optimize=how == "default", verbose=False, dynamic_shapes=shapes,
        input_names=names)
    program.save(path)


# Of what torch.export writes beside each node these are read; stack traces are most of a file.
METADATA = ("pkg.onnxscript.rewriter.rule_name", "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.fx_node")


def strip_metadata(model):
    for node in model.graph.node:
        kept = [entry for entry in node.metadata_props if entry.key in METADATA]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    for value in [*model.graph.value_info, *model.graph.input, *model.graph.output, *model.graph.initializer]:
        del value.metadata_props[:]


def strip_weights(path):
    model = onnx.load(path)
    strip_metadata(model)
    data = path.with_suffix(".weights")
    onnx.save_model(model, path, save_as_external_data=True, location=data.name,
                    size_threshold=SMALLEST_EXTERNAL_BYTES)
    for left in (data, pathlib.Path(f"{path}.data")):
        left.unlink(missing_ok=True)


def main():
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--how", choices=HOWS + ["all"], default="traced")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for how in HOWS if arguments.how == "all" else [arguments.how]:
        for name in arguments.names or TORCHVISION + TRANSFORMERS:
            path = arguments.folder / f"{name}.{how}.onnx"
            try:
                export(name, how, path)
                strip_weights(path)
            except Exception as error:  # say which, go on with the others
                path.with_suffix(".why").write_text(f"{type(error).__name__}: {str(error)[:2000]}")
                print(f"{name}, {how}: {type(error).__name__}", flush=True)
                continue
            print(name, how, path.stat().st_size, flush=True)


if __name__ == "__main__":
    main()
