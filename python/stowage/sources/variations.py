"""Options that any model may have: channels last, gradient checkpointing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stowage.errors import StowageError

if TYPE_CHECKING:
    from stowage.sources.source import Example, Source


def with_channels_last(source: Source) -> Source:
    """The source with its model and images in torch.channels_last."""
    import dataclasses

    import torch
    from torch.utils._pytree import tree_map

    source.model.to(memory_format=torch.channels_last)

    def innermost(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dim() == 4:
            return value.to(memory_format=torch.channels_last)
        return value

    def example(batch: int) -> Example:
        made = source.example(batch)
        return dataclasses.replace(made, arguments=tree_map(innermost, made.arguments),
                                   keywords=tree_map(innermost, made.keywords))

    return dataclasses.replace(source, example=example)


def with_checkpointing(source: Source) -> Source:
    """The source with its model's own gradient checkpointing switched on. Raises StowageError where the
    model has none."""
    model = source.model
    if hasattr(model, "gradient_checkpointing_enable"):
        try:
            model.gradient_checkpointing_enable()
        except ValueError as error:
            raise StowageError(f"--checkpoint: {error}") from None
    elif hasattr(model, "set_grad_checkpointing"):
        model.set_grad_checkpointing(True)
    else:
        raise StowageError(f"--checkpoint: {source.name} has no checkpointing of its own",
                           "write a script with torch.utils.checkpoint (docs/record.md)")
    return source
