"""From a word of the command line to a model with example inputs.

`resolve(text, options, batch, arguments)` takes

    torchvision:resnet50                     torchvision's builders
    timm:swinv2_tiny_window8_256             timm's registry
    transformers:gpt2                        a model type, a folder, a config.json, or a name in
                                             the hub's cache
    path/file.py:build_model                 a function in a file
    train.py                                 a script (only `record` takes one; see stowage/script.py)

and returns a `Source` (source.py): the model on the device "meta", a function that makes example
inputs for a batch, and the loss. Nothing is downloaded, and no weight has memory.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from stowage.errors import StowageError
from stowage.sources.source import Example, Source, SourceOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Example", "Source", "SourceOptions", "is_script", "resolve"]

# Which fields of SourceOptions each kind of source reads.
TAKES = {"torchvision": ("size",), "timm": ("size",), "transformers": ("seq", "size", "head"),
         "file": ("seq", "inputs", "batch_axes")}
LIBRARIES = tuple(name for name in TAKES if name != "file")


def is_script(text: str) -> bool:
    """Whether the word names a Python file to be run, not a function in one."""
    return text.endswith(".py")


def check_options(text: str, kind: str, options: SourceOptions) -> None:
    """Raises StowageError for an option that this kind of source does not read."""
    for field in dataclasses.fields(options):
        if getattr(options, field.name) not in (None, ()) and field.name not in TAKES[kind]:
            word = {"inputs": "input"}.get(field.name, field.name).replace("_", "-")
            raise StowageError(f"--{word}: {text} has no use for it", "leave it out")


def resolve(text: str, options: SourceOptions | None = None, batch: int | None = None,
            arguments: Sequence[str] = ()) -> Source:
    """The Source that the word names. `batch` is the one that is asked for, None: the source's own, or
    any; `arguments` are a file's own words. Raises StowageError where the word names no source, or where
    an option is not of its kind."""
    options = options or SourceOptions()
    library, colon, name = text.partition(":")
    if colon and library in LIBRARIES:
        if arguments:
            raise StowageError(f"-- {' '.join(arguments)}: {text} takes no words of its own",
                               "leave them out; what stands after -- is for FILE.py")
        if not name:
            raise StowageError(f"'{text}' names no model", f"for example {library}:" + {
                "torchvision": "resnet50", "timm": "vit_base_patch16_224",
                "transformers": "gpt2"}[library])
        check_options(text, library, options)
        if library == "torchvision":
            from stowage.sources import torchvision_source

            return torchvision_source.resolve(name, options)
        if library == "timm":
            from stowage.sources import timm_source

            return timm_source.resolve(name, options)
        from stowage.sources import transformers_source

        return transformers_source.resolve(name, options)
    path, _, function = text.rpartition(":")
    if path.endswith(".py"):
        from stowage.sources import python_file

        check_options(text, "file", options)
        return python_file.resolve(path, function, options, batch, arguments)
    if is_script(text):
        raise StowageError(f"'{text}' is a script, not a model",
                           f"name a function in it that returns one: {text}:build_model")
    raise StowageError(
        f"'{text}' is no source",
        "torchvision:NAME, timm:NAME, transformers:NAME, FILE.py:FUNCTION, or a script FILE.py")
