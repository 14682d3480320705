"""What autograd keeps for the backward pass, one entry a storage."""

import dataclasses
import math

import torch


@dataclasses.dataclass
class Saved:
    """One tensor handed to the saved-tensor hooks; the tensor keeps its storage alive, so that no
    other storage can take its identity."""

    tensor: torch.Tensor
    module: str
    uses: list = dataclasses.field(default_factory=list)


class Collector:
    """Packs nothing: remembers each saved tensor and, when a node's attribute is read back, which
    one that was. `module` is the innermost module that was running."""

    def __init__(self):
        self.saved = []
        self.read_back = []
        self.modules = [""]

    def pack(self, tensor):
        self.saved.append(Saved(tensor, self.modules[-1]))
        return len(self.saved) - 1

    def unpack(self, index):
        self.read_back.append(index)
        return self.saved[index].tensor

    def watch_modules(self, model):
        """Keep the stack of running modules; returns the hooks to remove."""
        def leave(*_):
            self.modules.pop()

        hooks = []
        for name, module in model.named_modules():
            hooks.append(module.register_forward_pre_hook(
                lambda *_, name=name: self.modules.append(name)))
            hooks.append(module.register_forward_hook(leave))
        return hooks


def graph_nodes(loss):
    """Every node of the backward graph, in the order in which forward created them."""
    seen, stack = {}, [loss.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen[node] = node._sequence_nr()
        stack.extend(parent for parent, _ in node.next_functions)
    computing = [n for n in seen if n.name() != "torch::autograd::AccumulateGrad"]
    return sorted(computing, key=lambda n: seen[n])


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v)]
    return []


def is_python_number(tensor):
    """Autograd saves the 0.5 of `0.5 * x` as a float64 scalar in host memory, past the hooks; the
    number of samples that a loss is divided by as an int64 one."""
    return (tensor.dim() == 0 and tensor.device.type == "cpu" and
            tensor.dtype in (torch.float64, torch.int64))


def attribute_uses(collector, loss):
    """Name the node and the attribute of each saved tensor. A tensor that a node holds although no
    hook saw it is appended to the collector: the cross-check of the hooks."""
    unseen = 0
    for node in graph_nodes(loss):
        names = [name for name in dir(node) if name.startswith("_saved_")]
        if hasattr(node, "saved_tensors"):
            names.append("saved_tensors")
        for name in names:
            collector.read_back.clear()
            held = tensors_in(getattr(node, name))
            use = (node.name(), name.removeprefix("_saved_"))
            for index in collector.read_back:
                collector.saved[index].uses.append(use)
            if not collector.read_back:
                past_hooks = [t for t in held if not is_python_number(t)]
                collector.saved.extend(Saved(t, "", [use]) for t in past_hooks)
                unseen += len(past_hooks)
    return unseen


def named_storages(model, inputs, target):
    """Storage identity -> (kind, name) of everything that exists before the step."""
    named = {}
    for name, tensor in model.named_parameters():
        named[tensor.untyped_storage()._cdata] = ("parameter", name)
    for name, tensor in model.named_buffers():
        named[tensor.untyped_storage()._cdata] = ("buffer", name)
    for tensor in tensors_in(inputs):
        named[tensor.untyped_storage()._cdata] = ("input", "input")
    named[target.untyped_storage()._cdata] = ("target", "target")
    return named


def by_storage(saved, named):
    """Group saved tensors by storage, in order of first saving."""
    entries = {}
    for item in saved:
        storage = item.tensor.untyped_storage()
        kind, name = named.get(storage._cdata, ("other", None))
        entry = entries.setdefault(storage._cdata, {
            "storage_bytes": storage.nbytes(), "kind": kind,
            **({"name": name} if name else {}), "saved_by": []})
        shape, dtype = list(item.tensor.shape), str(item.tensor.dtype).removeprefix("torch.")
        for node, attribute in item.uses or [(None, None)]:
            entry["saved_by"].append({"node": node, "attribute": attribute, "shape": shape,
                                      "dtype": dtype, "module": item.module})
    return list(entries.values())


def totals(entries):
    result = {}
    for kind in ("parameter", "buffer", "input", "target", "other"):
        sizes = [e["storage_bytes"] for e in entries if e["kind"] == kind]
        result[kind] = {"storages": len(sizes), "bytes": sum(sizes)}
    return result


def collect(reference, model, inputs, target):
    """Run one forward pass with the loss; returns (entries, number of tensors no hook saw)."""
    collector = Collector()
    hooks = collector.watch_modules(model)
    try:
        with torch.autograd.graph.saved_tensors_hooks(collector.pack, collector.unpack):
            output, loss = reference.loss(model, inputs, target)
        unseen = attribute_uses(collector, loss)
    finally:
        for hook in hooks:
            hook.remove()
    return by_storage(collector.saved, named_storages(model, inputs, target)), unseen


def layer_table(reference, model, inputs, target):
    """Leaf modules in call order with the shapes of their outputs."""
    rows, hooks = [], []
    for name, module in model.named_modules():
        if not list(module.children()):
            hooks.append(module.register_forward_hook(
                lambda module, _, output, name=name: rows.append(
                    {"name": name, "type": type(module).__name__,
                     "output_shape": list(tensors_in(output)[0].shape)})))
    with torch.no_grad():
        reference.loss(model, inputs, target)
    for hook in hooks:
        hook.remove()
    return rows


def element_bytes(tensors):
    return sum(math.prod(t.shape) * t.element_size() for t in tensors)
