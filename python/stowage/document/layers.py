"""The list of layers: leaf modules in the order of their first calls, as `stowage summary` prints
them, with what each computes and what it keeps for backward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stowage.document.affine import Affine, NotAffine

if TYPE_CHECKING:
    from stowage.document.assemble import Assembly
    from stowage.document.classes import StorageRow


def layer_rows(assembly: Assembly,
               rows: list[StorageRow]) -> tuple[list[list[Any]], int | list[int] | None]:
    """(rows [name, operator, shape, parameters, flops, saved bytes], bytes of all results)."""
    tables, affine = assembly.tables, assembly.affine
    several = [step.layers for step in assembly.steps]
    flops, saved = sums(assembly, rows)
    table, result = [], None
    for name, (kind, _, parameters) in several[0].items():
        shapes = [layers[name].shape for layers in several if name in layers]
        if len(shapes) < len(several):
            continue
        try:
            shape = tables.shape(affine.sizes(shapes, name))
        except (NotAffine, ValueError):
            continue
        table.append([name, kind, shape, parameters, fitted(affine, flops, name, len(several)),
                      fitted(affine, saved, name, len(several))])
    return table, result


def fitted(affine: Affine, sums_by_layer: dict[str, list[int]], name: str,
           count: int) -> int | list[int]:
    values = sums_by_layer.get(name, (0,) * count)
    size = affine.fit(tuple(values))
    return size if size is not None else values[0]


def sums(assembly: Assembly,
         rows: list[StorageRow]) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """({layer: FLOPs of its forward}, {layer: bytes that it keeps and that only it made}), each a
    tuple with a number for each batch."""
    flops: dict[str, list[int]] = {}
    saved: dict[str, list[int]] = {}
    for batch, (step, storages) in enumerate(zip(assembly.steps, assembly.storages)):
        count = len(assembly.steps)
        for node in step.nodes:
            if node.phase == "forward":
                flops.setdefault(node.layer, [0] * count)[batch] += node.flops
        seen = set()
        for row in step.saved:
            if row.storage in storages.made and row.storage not in seen:
                seen.add(row.storage)
                layer = step.nodes[row.node].layer
                saved.setdefault(layer, [0] * count)[batch] += (
                    assembly.recording.storages[row.storage].bytes)
    return flops, saved
