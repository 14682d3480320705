#!/usr/bin/env python3
"""Write quantised_layouts.json: the tensors of quantised models as the libraries' own modules hold them.

    python quantised_layouts.py --gptqmodel FOLDER --autoawq FOLDER

Each case is a small transformers model on PyTorch's meta device (no data), with its
quantization_config. Linear layers are replaced by the library's class: by transformers' own function
where it runs without a GPU (replace_with_fp8_linear, replace_with_bnb_linear), by compressed-tensors'
apply_quantization_config and compress_model, else by the class that the library's loader takes
(GPTQModel's GPTQQuantLinear and AWQuantLinear, AutoAWQ's WQLinear_GEMV and WQLinear_GEMVFast).
compressed-tensors, bitsandbytes and torchao pack values, so that those models are on the CPU, with
random ones in bfloat16.

`--gptqmodel` is a folder with the package gptqmodel of https://github.com/ModelCloud/GPTQModel, and
`--autoawq` one with the package awq of AutoAWQ's source distribution; neither installs without a GPU.
Written are, for each case, the configuration, the bytes of all tensors, their number, and the tensors
of the first layer and of the output.
"""

import argparse
import importlib.metadata
import json
import pathlib
import sys
import types

import torch
import transformers

HERE = pathlib.Path(__file__).parent
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 256,
         "intermediate_size": 704, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 128,
         "dtype": "bfloat16", "transformers_version": "5.24.0"}
QWEN = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 256,
        "intermediate_size": 768, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 128,
        "dtype": "bfloat16", "transformers_version": "5.24.0"}

MIXTRAL = {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "hidden_size": 256,
           "intermediate_size": 384, "num_hidden_layers": 2, "num_attention_heads": 4,
           "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2,
           "vocab_size": 512, "max_position_embeddings": 128, "dtype": "bfloat16",
           "transformers_version": "5.24.0"}

GPT_OSS = {"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "hidden_size": 256,
           "intermediate_size": 384, "num_hidden_layers": 2, "num_attention_heads": 4,
           "num_key_value_heads": 2, "head_dim": 64, "num_local_experts": 4,
           "num_experts_per_tok": 2, "vocab_size": 512, "max_position_embeddings": 128,
           "dtype": "bfloat16", "transformers_version": "5.24.0"}


def compressed(form: str, weights: dict, inputs: dict | None = None,
               ignore: tuple = ("lm_head",)) -> dict:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
    return {"quant_method": "compressed-tensors", "format": form, "ignore": list(ignore),
            "quantization_status": "compressed", "config_groups": {"group_0": group}}


def int_weights(bits: int, strategy: str, **more: object) -> dict:
    return {"num_bits": bits, "type": "int", "strategy": strategy, "symmetric": True, **more}


def float_weights(bits: int, strategy: str, **more: object) -> dict:
    return {"num_bits": bits, "type": "float", "strategy": strategy, "symmetric": True, **more}


def gptq(bits: int, group: int, **more: object) -> dict:
    return {"quant_method": "gptq", "bits": bits, "group_size": group, **more}


def awq(version: str, group: int, **more: object) -> dict:
    return {"quant_method": "awq", "bits": 4, "group_size": group, "version": version,
            "zero_point": True, **more}


def torchao(config: str, **data: object) -> dict:
    return {"quant_method": "torchao",
            "quant_type": {"default": {"_type": config, "_version": 2, "_data": data}}}


def granularity(name: str, **data: object) -> dict:
    return {"_type": name, "_version": 1, "_data": data}


TOKEN_INT8 = {"num_bits": 8, "type": "int", "strategy": "token", "symmetric": True, "dynamic": True}
TENSOR_FP8 = {"num_bits": 8, "type": "float", "strategy": "tensor", "symmetric": True,
              "dynamic": False}
LOCAL_FP4 = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16,
             "symmetric": True, "dynamic": "local"}
LISTS = ["model.layers.0.mlp.down_proj", r"model\.layers\.1\.self_attn\.[qk]_proj", "o_proj"]

CASES = {
    **{f"gptq-{bits}-{group}": (LLAMA, gptq(bits, group))
       for bits, group in ((2, 64), (3, 128), (4, 128), (4, -1), (8, 32), (8, 128))},
    "gptq-qwen-8-128": (QWEN, gptq(8, 128, desc_act=True)),
    "gptq-qwen-dynamic": (QWEN, gptq(4, 128, dynamic={
        r"-:model\.layers\.0\.mlp\..*": {}, r"+:.*\.q_proj$": {"bits": 8, "group_size": 32}})),
    "awq-gemm-128": (QWEN, awq("gemm", 128)),
    "awq-gemm-64-lists": (QWEN, awq("gemm", 64, modules_to_not_convert=LISTS)),
    "awq-gemv-128": (QWEN, awq("gemv", 128)),
    "awq-gemv-64": (QWEN, awq("gemv", 64)),
    "awq-gemv-32": (QWEN, awq("gemv", 32)),
    "awq-gemv_fast-128": (QWEN, awq("gemv_fast", 128)),
    "fp8-block": (LLAMA, {"quant_method": "fp8", "weight_block_size": [128, 128]}),
    "fp8-block-lists": (QWEN, {"quant_method": "fp8", "weight_block_size": [64, 32],
                               "modules_to_not_convert": LISTS}),
    "fp8-tensor-static": (QWEN, {"quant_method": "fp8", "weight_block_size": None,
                                 "activation_scheme": "static"}),
    "fp8-experts": (MIXTRAL, {"quant_method": "fp8", "weight_block_size": [128, 128]}),
    "fp8-block-ue8m0": (LLAMA, {"quant_method": "fp8", "weight_block_size": [128, 128],
                                "scale_fmt": "ue8m0"}),
    "fbgemm_fp8": (LLAMA, {"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["lm_head"]}),
    "mxfp4-experts": (GPT_OSS, {"quant_method": "mxfp4", "modules_to_not_convert": [
        "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}),
    "mxfp4-lists": (GPT_OSS, {"quant_method": "mxfp4",
                              "modules_to_not_convert": ["model.layers.1.mlp"]}),
    "ct-pack-4-group": (QWEN, compressed("pack-quantized",
                                         int_weights(4, "group", group_size=128))),
    "ct-pack-4-asymmetric": (QWEN, compressed("pack-quantized", int_weights(
        4, "group", group_size=64) | {"symmetric": False})),
    "ct-pack-8-channel": (QWEN, compressed("pack-quantized", int_weights(8, "channel"))),
    "ct-int-8": (QWEN, compressed("int-quantized", int_weights(8, "channel"), TOKEN_INT8,
                                  ("lm_head", r"re:.*\.down_proj$"))),
    "ct-float-channel": (QWEN, compressed("float-quantized", float_weights(8, "channel"))),
    "ct-float-tensor-static": (QWEN, compressed("float-quantized", float_weights(8, "tensor"),
                                                TENSOR_FP8)),
    "ct-float-block": (QWEN, compressed("float-quantized", float_weights(
        8, "block", block_structure=[128, 128]))),
    "ct-naive-8": (QWEN, compressed("naive-quantized", float_weights(8, "tensor"))),
    "ct-nvfp4": (QWEN, compressed("nvfp4-pack-quantized", float_weights(
        4, "tensor_group", group_size=16, scale_dtype="torch.float8_e4m3fn"), LOCAL_FP4)),
    "ct-mxfp4": (QWEN, compressed("mxfp4-pack-quantized", float_weights(
        4, "group", group_size=32, scale_dtype="torch.uint8"))),
    "bnb-nf4-double": (LLAMA, {"quant_method": "bitsandbytes", "load_in_4bit": True,
                               "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}),
    "bnb-fp4": (LLAMA, {"quant_method": "bitsandbytes", "load_in_4bit": True}),
    "bnb-int8-lists": (LLAMA, {"quant_method": "bitsandbytes", "load_in_8bit": True,
                               "llm_int8_skip_modules": ["lm_head", *LISTS]}),
    "torchao-int8": (LLAMA, torchao("Int8WeightOnlyConfig", granularity=granularity("PerRow"))),
    "torchao-int8-group": (LLAMA, torchao("Int8WeightOnlyConfig",
                                          granularity=granularity("PerGroup", group_size=64))),
    "torchao-fp8": (LLAMA, torchao("Float8WeightOnlyConfig", granularity=granularity("PerRow"))),
    "torchao-fp8-tensor": (LLAMA, torchao("Float8WeightOnlyConfig",
                                          granularity=granularity("PerTensor"))),
}


def model_of(config: dict, device: str) -> torch.nn.Module:
    kind = transformers.AutoConfig.for_model(**{k: v for k, v in config.items() if k != "dtype"})
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(kind, dtype=torch.bfloat16)
    return model.eval()


def default_kept(model: torch.nn.Module) -> list[str]:
    from transformers.quantizers.base import get_keys_to_not_convert
    return get_keys_to_not_convert(model)


def linear_layers(model: torch.nn.Module) -> list[tuple[str, torch.nn.Linear]]:
    return [(name, module) for name, module in model.named_modules()
            if type(module) is torch.nn.Linear]


def with_gptq(model: torch.nn.Module, config: dict) -> None:
    """optimum's convert_model (layers of the blocks), with GPTQModel's rules of `dynamic`."""
    import re

    from gptqmodel.nn_modules.qlinear import GPTQQuantLinear
    for name, module in linear_layers(model):
        if ".layers." not in name:
            continue
        bits, group, skipped = config["bits"], config["group_size"], False
        for pattern, own in config.get("dynamic", {}).items():
            if not re.match(pattern.removeprefix("-:").removeprefix("+:"), name):
                continue
            skipped = pattern.startswith("-:")
            bits, group = own.get("bits", bits), own.get("group_size", group)
            break
        if skipped:
            continue
        made = torch.nn.Module.__new__(GPTQQuantLinear)
        torch.nn.Module.__init__(made)
        made.in_features, made.out_features = module.in_features, module.out_features
        made.bits, made.pack_dtype, made.pack_dtype_bits = bits, torch.int32, 32
        made.group_size = group if group != -1 else module.in_features
        made._register_gptq_buffers(bias=module.bias is not None)
        model.set_submodule(name, made)


def with_awq(model: torch.nn.Module, config: dict) -> None:
    from transformers.quantizers.quantizers_utils import should_convert_module
    kept = default_kept(model) + config.get("modules_to_not_convert", [])
    for name, module in linear_layers(model):
        if should_convert_module(name, kept):
            model.set_submodule(name, awq_layer(config, module))


def import_linear_classes(folder: str) -> None:
    """AutoAWQ's linear layers alone: the package as a whole wants what calibration needs."""
    for name in ("awq", "awq.modules", "awq.modules.linear"):
        package = types.ModuleType(name)
        package.__path__ = [str(pathlib.Path(folder, *name.split(".")))]
        sys.modules[name] = package


def awq_layer(config: dict, module: torch.nn.Linear) -> torch.nn.Module:
    import awq.modules.linear.gemv as gemv
    import awq.modules.linear.gemv_fast as gemv_fast
    from awq.modules.linear.gemm import WQLinear_GEMM
    kinds = {"gemm": WQLinear_GEMM, "gemv": gemv.WQLinear_GEMV,
             "gemv_fast": gemv_fast.WQLinear_GEMVFast}
    return kinds[config["version"]](config["bits"], config["group_size"], module.in_features,
                                    module.out_features, module.bias is not None, "meta")


def with_fp8(model: torch.nn.Module, config: dict) -> None:
    from transformers.integrations.finegrained_fp8 import replace_with_fp8_linear
    settings = transformers.FineGrainedFP8Config(**config)
    kept = config.get("modules_to_not_convert") or default_kept(model)
    torch.set_default_dtype(torch.bfloat16)  # as from_pretrained does
    replace_with_fp8_linear(model, kept, settings, pre_quantized=True)
    torch.set_default_dtype(torch.float32)


def with_fbgemm(model: torch.nn.Module, config: dict) -> None:
    from unittest import mock

    import transformers.integrations.fbgemm_fp8 as fbgemm
    with mock.patch.object(fbgemm, "get_quantize_fp8_per_row"):  # an operator of FBGEMM's
        fbgemm.replace_with_fbgemm_fp8_linear(model, config["modules_to_not_convert"],
                                              transformers.FbgemmFp8Config(), pre_quantized=True)


def with_mxfp4(model: torch.nn.Module, config: dict) -> None:
    """The blocks are the class's own; the scales, which it keeps beside them, are the checkpoint's."""
    from unittest import mock

    import transformers.integrations.mxfp4 as mxfp4
    with mock.patch("transformers.integrations.hub_kernels.get_kernel"):  # Triton's, for GPUs
        mxfp4.replace_with_mxfp4_linear(model, transformers.Mxfp4Config(),
                                        config["modules_to_not_convert"])
    for module in model.modules():
        if not isinstance(module, mxfp4.Mxfp4GptOssExperts):
            continue
        for name in ("gate_up_proj", "down_proj"):
            experts, rows, half = getattr(module, name).shape
            module.register_buffer(f"{name}_scales", torch.empty(
                experts, rows, half * 2 // 32, dtype=torch.uint8, device="meta"))


def with_compressed_tensors(model: torch.nn.Module, config: dict) -> None:
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config
    settings = QuantizationConfig.model_validate(config)
    apply_quantization_config(model, settings)
    ModelCompressor(quantization_config=settings).compress_model(model)


def with_bitsandbytes(model: torch.nn.Module, config: dict) -> None:
    import bitsandbytes
    from transformers.quantizers.quantizers_utils import should_convert_module
    kept = config.get("llm_int8_skip_modules") or default_kept(model)
    for name, module in linear_layers(model):
        if not should_convert_module(name, kept):
            continue
        if config.get("load_in_8bit"):
            made = bitsandbytes.nn.Linear8bitLt(module.in_features, module.out_features, False,
                                                has_fp16_weights=False)
            rows, columns = module.weight.shape
            made.weight = torch.nn.Parameter(torch.zeros(rows, columns, dtype=torch.int8),
                                             requires_grad=False)
            made.register_buffer("SCB", torch.zeros(rows))
        else:
            packed, state = bitsandbytes.functional.quantize_4bit(
                module.weight.data, blocksize=64,
                quant_type=config.get("bnb_4bit_quant_type", "fp4"),
                compress_statistics=config.get("bnb_4bit_use_double_quant", False))
            made = torch.nn.Module()
            made.weight = torch.nn.Parameter(packed, requires_grad=False)
            tables = {"absmax": state.absmax, "quant_map": state.code}
            if state.nested:
                tables |= {"nested_absmax": state.state2.absmax,
                           "nested_quant_map": state.state2.code, "nested_offset": state.offset}
            for key, table in tables.items():
                made.register_buffer(f"weight_{key}", table)
        model.set_submodule(name, made)


def with_torchao(model: torch.nn.Module, config: dict) -> None:
    from torchao.core.config import config_from_dict
    from torchao.quantization import quantize_
    settings = config_from_dict(config["quant_type"]["default"])
    kept = default_kept(model)
    quantize_(model, settings, lambda module, name: type(module) is torch.nn.Linear
              and name not in kept)
    for name, module in linear_layers(model):
        weight = module.weight
        if not hasattr(weight, "tensor_data_names"):
            continue
        made = torch.nn.Module()
        for part in [*weight.tensor_data_names,
                     *getattr(weight, "optional_tensor_data_names", [])]:
            if getattr(weight, part, None) is not None:
                made.register_buffer(part, getattr(weight, part))
        model.set_submodule(name, made)


META = ("gptq", "awq", "fp8", "fbgemm_fp8", "mxfp4")
MAKERS = {"gptq": with_gptq, "awq": with_awq, "fp8": with_fp8, "fbgemm_fp8": with_fbgemm,
          "mxfp4": with_mxfp4, "compressed-tensors": with_compressed_tensors,
          "bitsandbytes": with_bitsandbytes, "torchao": with_torchao}


def tensors_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    found = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {name: tensor for name, tensor in found.items() if "rotary_emb" not in name}


def measured(config: dict, quantisation: dict) -> dict:
    method = quantisation["quant_method"]
    model = model_of(config, "meta" if method in META else "cpu")
    MAKERS[method](model, quantisation)
    tensors = tensors_of(model)
    first = ["model.layers.0.mlp.up_proj", "model.layers.0.self_attn.q_proj", "lm_head"]
    if method == "mxfp4":
        first.append("model.layers.0.mlp.experts.down_proj")
    shown = {name: [list(tensor.shape), str(tensor.dtype).removeprefix("torch.")]
             for name, tensor in sorted(tensors.items())
             if name.startswith(tuple(first))}
    return {"config": {**config, "quantization_config": quantisation},
            "bytes": sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()),
            "tensors": len(tensors), "first": shown}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gptqmodel", required=True)
    parser.add_argument("--autoawq", required=True)
    given = parser.parse_args()
    sys.path.insert(0, given.gptqmodel)
    import_linear_classes(given.autoawq)
    versions = {name: importlib.metadata.version(name) for name in
                ("torch", "transformers", "compressed-tensors", "bitsandbytes", "torchao")}
    versions |= {"gptqmodel": "f4c327a1", "autoawq": "0.2.9"}
    cases = {}
    for name, (config, quantisation) in CASES.items():
        cases[name] = measured(config, quantisation)
        print(name, cases[name]["bytes"])
    text = ",\n".join(f" {json.dumps(name)}: {json.dumps(case)}" for name, case in cases.items())
    (HERE / "quantised_layouts.json").write_text(
        f'{{"versions": {json.dumps(versions)},\n"cases": {{\n{text}\n}}}}\n')


if __name__ == "__main__":
    main()
