"""`record`: one step of a model or of the user's own function, as a step file, without a GPU."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from stowage import active_script
from stowage.errors import StowageError
from stowage.options import RecordOptions, as_int, check_batch, check_options
from stowage.shown import printable_tree
from stowage.whole_file import StrPath, check_place

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from stowage.pretend.session import Session
    from stowage.sources.source import Example, FixedBatch, Source
    from stowage.training.batch_axes import Axes, BatchAxes
    from stowage.training.function_step import FunctionStep
    from stowage.training.model_step import ModelStep
    from stowage.training.optimizers import KnownOptimizer
    from stowage.training.steps import Recording


class RecordedStep:
    """A step file that is not written yet. `document` is its content, as in docs/step-file.md; `save`
    writes it."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    @property
    def warnings(self) -> list[str]:
        """Messages of warnings_with_hints()."""
        return [warning["message"] for warning in self.warnings_with_hints()]

    def warnings_with_hints(self) -> list[dict[str, str]]:
        """{"message", "hint" if there is one}: those of the file, and that of parameters which the step
        does not update."""
        from stowage.document.not_updated import update_warning

        missing = update_warning(self.document)
        return [*self.document["warnings"], *([missing] if missing else [])]

    def warn(self, message: str, hint: str) -> None:
        self.document["warnings"].append(printable_tree({"message": message, "hint": hint}))

    def save(self, path: StrPath) -> RecordedStep:
        """Writes the file, whole or not at all, and returns self. Raises StowageError where it cannot be
        written."""
        from stowage.document.write import write

        write(self.document, path)
        return self


def probed_batches(batch: int) -> list[int]:
    """The batch that is described, and others that say how sizes grow. An axis of one element is like no
    other: beside a batch of 1 there are three others, which say it alone where 1 does not."""
    return [1, 2, 3, 7] if batch == 1 else [batch, batch + 1, 2 * batch + 3]


def at_batches(batch: int, fixed: FixedBatch | None,
               run: Callable[[list[int]], RecordedStep]) -> RecordedStep:
    """The RecordedStep of `run(batches)`: of the batch that is described and of those that say how sizes
    grow. `fixed` says that there are no others; where the step raises at another batch it is recorded
    again, at its own alone: the next step tells what the described one keeps."""
    from stowage.sources.source import FixedBatch, OtherBatchFails

    if fixed is None:
        try:
            return run(probed_batches(batch))
        except OtherBatchFails as failure:
            fixed = FixedBatch(str(failure), "record it again at the batch that is asked for")
    recorded = run([batch, batch])
    if fixed.reason:
        recorded.warn(f"the step is recorded for batch {batch} alone: {fixed.reason}", fixed.hint)
    return recorded


def record(model_or_function: torch.nn.Module | Callable[..., Any], example_inputs: Any, *,
           optimizer: Any = "sgd", loss: Callable[..., Any] | None = None, target: Any = None,
           mode: str = "train", precision: str = "fp32", batch_axes: Axes = "first",
           batch: int | None = None, implementation: str = "default", micro_batches: int = 1,
           zero_grad_to_none: bool = True, compute_capability: tuple[int, int] = (8, 6),
           seq: int | None = None, name: str | None = None,
           output: StrPath | None = None) -> RecordedStep:
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
    batch_axes          the inputs' axis that is the batch, or one for each tensor, None where it does
                        not follow the batch; by default the first, which has one size in all tensors
    batch               another batch than the inputs have
    output              a path: the file is written there

    seq                 tokens of a sequence, for the step file
    name                the model's in the step file; by default its class's or the function's
    compute_capability  (major, minor) of the device for which kernels are chosen
    micro_batches       of a model: forward and backward passes before an update
    zero_grad_to_none   of a model: zero_grad frees the gradients, else it fills them with zeros

    Returns a RecordedStep; its sizes are bytes and elements at any batch, if the step runs at others
    than `batch`. Raises StowageError for what the user can correct. In a script that
    `python -m stowage record` runs, the step goes into that command's file, and the script ends.
    """
    import torch

    if output is not None:
        check_place(output)
    batch, micro_batches, seq = as_int(batch), as_int(micro_batches), as_int(seq)
    options = RecordOptions(optimizer, implementation, precision, mode, micro_batches,
                            zero_grad_to_none, compute_capability, seq)
    check_options(options)
    if batch is not None:
        check_batch(batch)
    if name is not None and not isinstance(name, str):
        raise StowageError(f"name={name!r} is no text")
    session = None
    script = active_script.active
    if script is not None:  # `python -m stowage record` runs this script
        session, batch = script.session, script.batch or batch
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
    if script is not None:
        raise active_script.ScriptIsRecorded(recorded)
    if output is not None:
        recorded.save(output)
    return recorded


def record_model(model: torch.nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any],
                 target: Any, loss: Callable[..., Any] | None, batch: int | None, name: str | None,
                 batch_axes: Axes, options: RecordOptions,
                 session: Session | None = None) -> RecordedStep:
    """RecordedStep of a module with example inputs."""
    from stowage.sources.source import Source
    from stowage.training.batch_axes import BatchAxes

    axes = BatchAxes(arguments, keywords, target, batch_axes)
    axes.check_batch(batch)
    source = Source(name or type(model).__name__, "", model, axes.example,
                    own_loss(loss), options.seq, axes.batch, axes.fixed())
    return record_source(source, batch or axes.batch or 1, options, session)


def own_loss(loss: Callable[..., Any] | None) -> Callable[..., Any] | None:
    from stowage.sources.function_calls import own_loss as with_target

    return None if loss is None else with_target(loss)


def record_source(source: Source, batch: int, options: RecordOptions | None = None,
                  session: Session | None = None) -> RecordedStep:
    """RecordedStep of a Source (stowage/sources) at `batch` samples. `session`: the device is pretended
    already. Raises StowageError for what the user can correct."""
    how = options or RecordOptions()
    check_options(how)
    check_batch(batch)
    return at_batches(batch, source.fixed, lambda batches: source_at(source, batches, how, session))


def examples_at(source: Source, batches: Sequence[int]) -> dict[int, Example]:
    """{batch: Example}. They are made before the device is pretended: a source may run code of its
    user's. Raises OtherBatchFails where the first batch has one and another has none."""
    from stowage.sources.source import failure_at

    made = {}
    for batch in batches:
        try:
            made[batch] = source.example(batch)
        except Exception as error:
            if batch == batches[0]:
                raise
            raise failure_at(batch, error) from error
    return made


def source_at(source: Source, batches: Sequence[int], options: RecordOptions,
              session: Session | None) -> RecordedStep:
    import contextlib

    import torch

    from stowage.pretend.session import pretended_cuda
    from stowage.training.model_step import MODEL_DTYPES, ModelStep, check_rates, in_mode
    from stowage.training.optimizers import made_optimizer, rebuilt
    from stowage.training.parameter_hooks import result_warnings
    from stowage.training.steps import StepRunner
    from stowage.training.weightless import weightless

    training = options.mode == "train"
    check_rates(source.model)
    examples = examples_at(source, batches)
    with contextlib.ExitStack() as stack:
        session = session or stack.enter_context(pretended_cuda(options.capability))
        fake = stack.enter_context(weightless(source.model, MODEL_DTYPES.get(options.precision)))
        stack.enter_context(in_mode(source.model, training))
        optimizer: Any = None
        if training:
            trained = [p for p in source.model.parameters() if p.requires_grad]
            if not trained:
                raise StowageError(f"no parameter of {source.name} trains",
                                   "record it with mode inference")
            if isinstance(options.optimizer, torch.optim.Optimizer):
                optimizer = rebuilt(options.optimizer, fake.fakes)
            else:
                optimizer = made_optimizer(options, trained)
        step = ModelStep(source.model, examples.__getitem__, source.loss, optimizer,
                         options.precision, options.set_to_none, options.micro_batches)
        recording = StepRunner(session, step, {"": source.model}).run(batches)
        return recorded_step(recording, batches, step, source.name, source.description, source.seq,
                             options, result_warnings(fake.hook_results))


def record_function(function: Callable[..., Any], arguments: tuple[Any, ...],
                    keywords: dict[str, Any], batch: int | None, name: str | None, batch_axes: Axes,
                    options: RecordOptions, session: Session | None = None) -> RecordedStep:
    """RecordedStep of a function that runs a whole step. `session`: the device is pretended
    already, and so are the function's models."""
    from stowage.training.batch_axes import BatchAxes

    if batch is not None:
        check_batch(batch)
    axes = BatchAxes(arguments, keywords, None, batch_axes)
    axes.check_batch(batch)
    options = dataclasses.replace(options, micro_batches=1, precision=None)
    label = name or str(getattr(function, "__name__", "step"))
    return at_batches(batch or axes.batch or 1, axes.fixed(), lambda batches: function_at(
        function, axes, arguments, keywords, label, batches, options, session))


def function_at(function: Callable[..., Any], axes: BatchAxes, arguments: tuple[Any, ...],
                keywords: dict[str, Any], name: str, batches: Sequence[int], options: RecordOptions,
                session: Session | None,
                unforeseen: Sequence[torch.optim.Optimizer] = ()) -> RecordedStep:
    """RecordedStep of a function at the batches. `unforeseen`: optimizers beside those that are found."""
    import contextlib

    from stowage.pretend.session import pretended_cuda
    from stowage.training.found import found_in
    from stowage.training.function_step import FunctionStep, fake_parameters_updated
    from stowage.training.model_step import check_rates
    from stowage.training.parameter_hooks import result_warnings
    from stowage.training.steps import StepRunner
    from stowage.training.weightless import fake_like, weightless

    models, found = found_in(function, arguments, keywords)
    optimizers = [*found.values(), *unforeseen]
    for model in models.values():
        check_rates(model)
    with contextlib.ExitStack() as stack:
        place: Callable[[torch.Tensor], torch.Tensor] = copy_on_own_device if session else fake_like
        device = session or stack.enter_context(pretended_cuda(options.capability))
        fake_models = [stack.enter_context(weightless(model)) for model in models.values()]
        fakes = {key: fake for model in fake_models for key, fake in model.fakes.items()}
        stack.enter_context(fake_parameters_updated(optimizers, fakes))
        step = FunctionStep(function, axes.example, place, optimizers)
        runner = StepRunner(device, step, models)
        recording = runner.run(batches)
        returned = [name for model in fake_models for name in model.hook_results]
        if unforeseen or not runner.unforeseen:  # a function may make a new one in each call
            return recorded_step(recording, batches, step, name, "", options.seq, options,
                                 result_warnings(returned))
    # They had the model's own parameters, and nothing named their state: once more, with them.
    return function_at(function, axes, arguments, keywords, name, batches, options, session,
                       [*unforeseen, *runner.unforeseen.values()])


def copy_on_own_device(tensor: torch.Tensor) -> torch.Tensor:
    """A new tensor of that layout, on the same device."""
    from stowage.training.weightless import fake_like

    return fake_like(tensor, device=tensor.device)


def recorded_step(recording: Recording, batches: Sequence[int], step: ModelStep | FunctionStep,
                  name: str, source: str, seq: int | None, options: RecordOptions,
                  more_warnings: list[dict[str, str]]) -> RecordedStep:
    """The RecordedStep of a recording: the step file with its settings and warnings."""
    import torch

    from stowage.document.assemble import document
    from stowage.document.description import Description, input_names
    from stowage.document.settings import layout_of, precision_of
    from stowage.training.model_step import ModelStep

    training = bool(recording.steps[1].losses)
    known, warnings = optimizer_of(recording, step) if training else (NO_OPTIMIZER, [])
    warnings += more_warnings
    if recording.compiled:
        warnings.append({"message": "torch.compile is left out: the step is recorded as eager "
                                    "PyTorch runs it"})
    description = Description(
        name=name, source=source, torch_version=torch.__version__.partition("+")[0],
        precision=options.precision or precision_of(recording), training=training,
        micro_batches=options.micro_batches, seq=seq, input_names=input_names(step),
        optimizer=known, capability=options.capability, layout=layout_of(recording.parameters),
        warnings=warnings, repeatable=options.micro_batches == 1 and isinstance(step, ModelStep))
    return RecordedStep(document(recording, batches, description))


NO_OPTIMIZER: KnownOptimizer = ("sgd", {}, "default", True)


def optimizer_of(recording: Recording, step: ModelStep | FunctionStep,
                 ) -> tuple[KnownOptimizer, list[dict[str, str]]]:
    """(what `settings` say of the step's optimizer, warnings): of the one that stepped first; where none
    did and nothing was updated, of the one that was found."""
    from stowage.document.not_updated import partial_update_warning
    from stowage.training.optimizers import settings_of

    partial = partial_update_warning(recording)
    warnings = [partial] if partial else []
    updates = recording.updates_any
    if recording.stepped:
        known = settings_of(recording.stepped[0])
        if not known[3]:
            warnings.append({
                "message": f"the optimizer is {type(recording.stepped[0]).__name__}, which 'settings' "
                           "cannot name; its updates are in the step as they ran"})
        return known, warnings
    if updates:
        warnings.append({
            "message": "the step updates its parameters without an optimizer of torch.optim; "
                       "'settings' call it sgd, and its updates are in the step as they ran"})
        return NO_OPTIMIZER, warnings
    found = [settings_of(optimizer) for optimizer in step.optimizers]
    return next((known for known in found if known[3]), NO_OPTIMIZER), warnings
