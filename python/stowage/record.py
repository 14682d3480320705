"""`record`: one step of a model, as a step file, without a GPU."""

import dataclasses
from typing import Any

from stowage.errors import StowageError


@dataclasses.dataclass
class Description:
    """What the step file says that no tensor does."""

    name: str
    source: str
    torch_version: str
    precision: str
    training: bool
    micro_batches: int
    seq: int | None
    input_names: list
    optimizer: tuple  # name, settings, implementation, whether the table knows it
    capability: tuple
    layout: str
    warnings: list

    def settings(self, graph):
        import torch

        from stowage.document.settings import optimizer_settings, step_settings

        persists = any(row[1] == "gradient" and row[2] == "persistent" for row in graph["storages"])
        name, settings, implementation, _ = self.optimizer
        return step_settings(torch, optimizer_settings(name, settings, implementation),
                             self.training, self.micro_batches,
                             "to_zero" if persists else "to_none", self.layout, self.capability)


class RecordedStep:
    """A step file that is not written yet: `document` as JSON has it, `save(path)`."""

    def __init__(self, document):
        self.document = document

    @property
    def warnings(self):
        return [warning["message"] for warning in self.document["warnings"]]

    def save(self, path):
        """Write the file, whole or not at all; returns self."""
        from stowage.document.write import write

        write(self.document, path)
        return self


def batches_of(batch):
    """The batch that is described and the two that say how sizes grow. 1 is like no other: axes of
    one element have no layout of their own."""
    return [batch, batch + 1, 2 * batch + 3]


def input_names(step):
    """A name for each input tensor of a ModelStep, in their order."""
    import torch
    from torch.utils._pytree import tree_flatten_with_path

    arguments, keywords, target = step.batch
    names = []
    for prefix, tree in (("input", arguments), ("", keywords), ("target", target)):
        leaves, _ = tree_flatten_with_path(tree)
        tensors = [(path, leaf) for path, leaf in leaves if isinstance(leaf, torch.Tensor)]
        for path, _ in tensors:
            words = [str(getattr(key, "key", getattr(key, "idx", ""))) for key in path]
            if prefix == "input" and len(tensors) == 1:
                words = []
            names.append(".".join(word for word in (prefix, *words) if word) or "input")
    return names


@dataclasses.dataclass
class RecordOptions:
    """How a model is recorded."""

    optimizer: Any = "sgd"
    implementation: str = "default"
    precision: str = "fp32"
    mode: str = "train"
    micro_batches: int = 1
    set_to_none: bool = True
    capability: tuple = (8, 6)


def record_source(source, batch, options=RecordOptions()):
    """RecordedStep of a Source (stowage/sources)."""
    import torch

    from stowage.document.assemble import document
    from stowage.document.settings import layout_of
    from stowage.pretend.session import pretended_cuda
    from stowage.training.fake_model import faked
    from stowage.training.model_step import WHOLE, ModelStep
    from stowage.training.optimizers import optimizer_maker, rebuilt, settings_of
    from stowage.training.steps import StepRunner

    training = options.mode == "train"
    batches = batches_of(batch)
    with pretended_cuda(options.capability) as session, faked(
            source.model, WHOLE.get(options.precision)) as fake:
        source.model.train(training)
        optimizer = None
        if training:
            trained = [p for p in source.model.parameters() if p.requires_grad]
            if not trained:
                raise StowageError(f"no parameter of {source.name} trains",
                                   "record it with --mode inference")
            if isinstance(options.optimizer, torch.optim.Optimizer):
                optimizer = rebuilt(options.optimizer, fake.fakes)
            else:
                optimizer = optimizer_maker(options.optimizer, options.implementation)(trained)
        step = ModelStep(source.model, source.example, source.loss, optimizer, options.precision,
                         options.set_to_none, options.micro_batches)
        recording = StepRunner(session, step, {"": source.model}).run(batches)
        known = settings_of(optimizer) if optimizer else ("sgd", {}, "default", True)
        warnings = [] if known[3] else [{
            "message": f"the optimizer is {type(optimizer).__name__}, which 'settings' cannot name; "
                       "its updates are in the step as they ran"}]
        description = Description(
            source.name, source.description, torch.__version__.partition("+")[0],
            options.precision, training, options.micro_batches, source.seq, input_names(step),
            known, session.capability, layout_of(recording.parameters), warnings)
    return RecordedStep(document(recording, batches, description))
