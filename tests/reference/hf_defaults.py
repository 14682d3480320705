#!/usr/bin/env python3
"""Write estimator/huggingface/default_table.cpp: what transformers' configuration classes take where a
config.json has no such key, and the other names of keys.

    python hf_defaults.py
"""

import dataclasses
import json
import pathlib
import textwrap

TYPES = ("gpt2", "llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "granite",
         "starcoder2", "gemma", "gemma2", "gemma3_text", "phi", "phi3", "falcon", "stablelm", "bert",
         "roberta", "xlm-roberta", "camembert", "distilbert", "electra", "t5", "bart", "opt", "gpt_neox",
         "vit", "swin", "clip", "clip_text_model", "clip_vision_model", "whisper", "gpt_oss")
TARGET = pathlib.Path(__file__).parents[2] / "estimator" / "huggingface" / "default_table.cpp"


def default_of(field):
    if field.default is not dataclasses.MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else None


def row(name):
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = CONFIG_MAPPING[name]
    defaults = {field.name: default_of(field) for field in dataclasses.fields(kind)}
    defaults.pop("transformers_version", None)
    wrapped = [textwrap.wrap(json.dumps(part, sort_keys=True), 90, break_on_hyphens=False,
                             break_long_words=False)
               for part in (defaults, kind.attribute_map)]
    texts = ['R"(' + "\n".join(lines) + ')"' for lines in wrapped]
    return f'    {{"{name}", "{kind.__name__}",\n     {texts[0]},\n     {texts[1]}}},\n'


def main():
    import transformers

    TARGET.write_text(
        "// Written by tests/reference/hf_defaults.py from the configuration classes of transformers\n"
        f"// {transformers.__version__}; not by hand.\n"
        '#include "estimator/huggingface/default_table.hpp"\n\nnamespace stowage {\n\n'
        "// clang-format off\n"
        "std::span<const ConfigDefaults> config_default_table() {\n"
        "  static constexpr ConfigDefaults table[] = {\n"
        + "".join(row(name) for name in TYPES)
        + "  };\n  return table;\n}\n// clang-format on\n\n}  // namespace stowage\n")


if __name__ == "__main__":
    main()
