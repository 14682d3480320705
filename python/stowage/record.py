"""`record`: one step of a model or of the user's own function, as a step file, without a GPU."""

import dataclasses
from typing import Any

from stowage.errors import StowageError
from stowage.whole_file import check_place


@dataclasses.dataclass
class RecordOptions:
    """How a step is recorded. Of a function only `capability` is asked for: the rest is as the
    function has it."""

    optimizer: Any = "sgd"
    implementation: str = "default"
    precision: str = "fp32"
    mode: str = "train"
    micro_batches: int = 1
    set_to_none: bool = True
    capability: tuple = (8, 6)
    seq: int | None = None


class RecordedStep:
    """A step file that is not written yet: `document` as JSON has it, `save(path)`."""

    def __init__(self, document):
        self.document = document

    @property
    def warnings(self):
        return [warning["message"] for warning in self.document["warnings"]]

    def warn(self, message, hint):
        self.document["warnings"].append({"message": message, "hint": hint})

    def save(self, path):
        """Write the file, whole or not at all; returns self."""
        from stowage.document.write import write

        write(self.document, path)
        return self


def at_batches(batch, run):
    """The RecordedStep of `run(batches)`: of the batch that is described and two that say how sizes
    grow. Where the step raises at another batch it runs once more, at its own alone."""
    from stowage.training.steps import OtherBatchFails

    try:
        return run([batch, batch + 1, 2 * batch + 3])
    except OtherBatchFails as failure:
        recorded = run([batch, batch])
        recorded.warn(f"the step is recorded for batch {batch} alone: {failure}",
                      "record it again at the batch that is asked for")
        return recorded


def record(model_or_function, example_inputs, *, optimizer="sgd", loss=None, target=None,
           mode="train", precision="fp32", batch_axes=0, batch=None, implementation="default",
           micro_batches=1, zero_grad_to_none=True, compute_capability=(8, 6), seq=None, name=None,
           output=None):
    """Record one step.

    model_or_function   an nn.Module, or a function that runs a whole step: forward, backward,
                        optimizer.step(). Its models and optimizers are found among its arguments,
                        in its closure and in its globals
    example_inputs      a tensor, a tuple of arguments, or a dict of keywords; values do not count
    optimizer           of a model: a name ("adamw"), a class, a function of the parameters, or an
                        optimizer that exists
    loss, target        of a model: loss(output, target); without a loss the output's own `loss`
    mode                "train" or "inference"
    precision           fp32, fp64, fp16, bf16 (the model and its inputs), amp-fp16, amp-bf16
    batch_axes          the inputs' axis that is the batch, or one for each tensor
    batch               another batch than the inputs have
    output              a path: the file is written there

    Returns a RecordedStep. What the user can mend is a StowageError. In a script that
    `python -m stowage record` runs, the step goes into that command's file, and the script ends.
    """
    import torch

    from stowage import script

    if output is not None:
        check_place(output)
    options = RecordOptions(optimizer, implementation, precision, mode, micro_batches,
                            zero_grad_to_none, compute_capability, seq)
    session = None
    if script.active is not None:  # `python -m stowage record` runs this script
        session, batch = script.active.session, script.active.batch or batch
        options = dataclasses.replace(options, capability=session.capability)
    arguments, keywords = ((), example_inputs) if isinstance(example_inputs, dict) else (
        tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,),
        {})
    if isinstance(model_or_function, torch.nn.Module):
        recorded = record_model(model_or_function, arguments, keywords, target, loss, batch, name,
                                batch_axes, options, session)
    elif callable(model_or_function):
        recorded = record_function(model_or_function, arguments, keywords, batch, name, batch_axes,
                                   options, session)
    else:
        raise StowageError(f"{type(model_or_function).__name__} is neither a model nor a function")
    if script.active is not None:
        raise script.ScriptIsRecorded(recorded)
    if output is not None:
        recorded.save(output)
    return recorded


def record_model(model, arguments, keywords, target, loss, batch, name, batch_axes, options,
                 session=None):
    """RecordedStep of a module with example inputs."""
    from stowage.sources.source import Source
    from stowage.training.batch_axes import BatchAxes

    axes = BatchAxes(arguments, keywords, target, batch_axes)
    source = Source(name or type(model).__name__, "", model, axes.example,
                    own_loss(loss), options.seq, axes.batch)
    return record_source(source, batch or axes.batch or 1, options, session)


def check_words(options):
    """StowageError for a word that no option has."""
    from stowage.training.names import IMPLEMENTATIONS, MODES, PRECISIONS

    for name, words in (("precision", PRECISIONS), ("mode", MODES),
                        ("implementation", IMPLEMENTATIONS)):
        if getattr(options, name) not in words:
            raise StowageError(f"{name}={getattr(options, name)!r} is none of {', '.join(words)}")


def own_loss(loss):
    from stowage.sources.python_file import own_loss as with_target

    return None if loss is None else with_target(loss)


def record_source(source, batch, options=RecordOptions(), session=None):
    """RecordedStep of a Source (stowage/sources). `session`: the device is pretended already."""
    check_words(options)
    return at_batches(batch, lambda batches: source_at(source, batches, options, session))


def source_at(source, batches, options, session):
    import contextlib

    from stowage.pretend.session import pretended_cuda
    from stowage.training.model_step import WHOLE, ModelStep, in_mode
    from stowage.training.optimizers import optimizer_maker, rebuilt
    from stowage.training.steps import StepRunner
    from stowage.training.weightless import weightless

    import torch

    training = options.mode == "train"
    with contextlib.ExitStack() as stack:
        session = session or stack.enter_context(pretended_cuda(options.capability))
        fake = stack.enter_context(weightless(source.model, WHOLE.get(options.precision)))
        stack.enter_context(in_mode(source.model, training))
        optimizer = None
        if training:
            trained = [p for p in source.model.parameters() if p.requires_grad]
            if not trained:
                raise StowageError(f"no parameter of {source.name} trains",
                                   "record it with mode inference")
            if isinstance(options.optimizer, torch.optim.Optimizer):
                optimizer = rebuilt(options.optimizer, fake.fakes)
            else:
                optimizer = optimizer_maker(options.optimizer, options.implementation)(trained)
        step = ModelStep(source.model, source.example, source.loss, optimizer,
                         options.precision, options.set_to_none, options.micro_batches)
        recording = StepRunner(session, step, {"": source.model}).run(batches)
        return finished(recording, batches, step, optimizer, source.name,
                        source.description, source.seq, options)


def record_function(function, arguments, keywords, batch, name, batch_axes, options, session=None):
    """RecordedStep of a function that runs a whole step. `session`: the device is pretended
    already, and so are the function's models."""
    from stowage.training.batch_axes import BatchAxes

    axes = BatchAxes(arguments, keywords, None, batch_axes)
    batch = batch or axes.batch
    if batch is None:
        raise StowageError("the step's function takes no tensor, so that it has no batch",
                           "give the batch's tensors to it as arguments")
    options = dataclasses.replace(options, micro_batches=1, precision=None)
    name = name or getattr(function, "__name__", "step")
    return at_batches(batch, lambda batches: function_at(
        function, axes, arguments, keywords, name, batches, options, session))


def function_at(function, axes, arguments, keywords, name, batches, options, session):
    import contextlib

    from stowage.pretend.session import pretended_cuda
    from stowage.training.found import found_in
    from stowage.training.function_step import FunctionStep, over_fakes
    from stowage.training.steps import StepRunner
    from stowage.training.weightless import fake_like, weightless

    models, optimizers = found_in(function, arguments, keywords)
    with contextlib.ExitStack() as stack:
        if session is None:
            session = stack.enter_context(pretended_cuda(options.capability))
            place = fake_like
        else:
            place = as_it_lies
        fakes = {}
        for model in models.values():
            fakes.update(stack.enter_context(weightless(model)).fakes)
        stack.enter_context(over_fakes(optimizers.values(), fakes))
        step = FunctionStep(function, axes.example, place, optimizers.values())
        recording = StepRunner(session, step, models).run(batches)
        return finished(recording, batches, step, next(iter(optimizers.values()), None),
                        name, "", options.seq, options)


def as_it_lies(tensor):
    """A new tensor like it, on its own device."""
    from stowage.training.weightless import fake_like

    return fake_like(tensor, device=tensor.device)


def finished(recording, batches, step, optimizer, name, source, seq, options):
    """The RecordedStep of a recording."""
    import torch

    from stowage.document.assemble import document
    from stowage.document.description import Description, input_names
    from stowage.document.settings import layout_of, precision_of
    from stowage.training.model_step import ModelStep
    from stowage.training.optimizers import settings_of

    known = settings_of(optimizer) if optimizer else ("sgd", {}, "default", True)
    warnings = [] if known[3] else [{
        "message": f"the optimizer is {type(optimizer).__name__}, which 'settings' cannot name; its "
                   "updates are in the step as they ran"}]
    if recording.compiled:
        warnings.append({"message": "torch.compile is left out: the step is recorded as eager "
                                    "PyTorch runs it"})
    description = Description(
        name=name, source=source, torch_version=torch.__version__.partition("+")[0],
        precision=options.precision or precision_of(recording), training=bool(recording.steps[1].losses),
        micro_batches=options.micro_batches, seq=seq, input_names=input_names(step),
        optimizer=known, capability=options.capability, layout=layout_of(recording.parameters),
        warnings=warnings, repeatable=options.micro_batches == 1 and isinstance(step, ModelStep))
    return RecordedStep(document(recording, batches, description))
