"""A model's layers as Stowage's own description, by torch.export.

    text = stowage.export.export(source)      # a stowage.sources.Source

capture.py traces the model, layers.py and operators/ turn ATen's operations into the catalogue's
layers, tree.py and optional.py find the module hierarchy again, blocks.py and arguments.py what is
equal in it, yaml_text.py and describe.py write it down.
"""


def export(source, other_seq=None):
    """The description's text of a Source; StowageError where it cannot be one."""
    from .describe import converted, description  # not before: they need torch, and help does not

    return description(source.name, source.description, converted(source, other_seq), source.seq)


__all__ = ["export"]
