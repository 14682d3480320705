"""What training scripts do to save memory, as torchtune and TRL have it, under fake CUDA.

- `in_chunks`: torchtune's chunked output layer and loss (CEWithChunkedOutputLoss).
- `Offloading`: TRL's OffloadActivations around forward and backward. Fake tensors have no addresses
  and no streams: a storage is told by a number, and streams only keep order.
- `optimizer_in_backward`: an optimizer for each parameter, stepped by a hook on its gradient.
"""

import contextlib
import dataclasses
import importlib.util
import pathlib
import weakref
from unittest import mock


def torchtune_module(path):
    """A module of torchtune's by itself: the package as a whole wants an older torchao."""
    folder = importlib.util.find_spec("torchtune").submodule_search_locations[0]
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem,
                                                  pathlib.Path(folder) / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_chunks(reference, chunks):
    """The reference with its output layer and loss in parts of the sequence; labels are shifted."""
    loss_of = torchtune_module("modules/loss/ce_chunked_output_loss.py").CEWithChunkedOutputLoss(
        num_output_chunks=chunks)

    def loss(model, inputs, target):
        hidden = model.model(inputs, use_cache=False).last_hidden_state
        logits = [model.lm_head(chunk) for chunk in hidden.chunk(chunks, dim=1)]
        del hidden
        result = loss_of(logits, target)
        del logits
        return None, result

    return dataclasses.replace(reference, loss=loss)


class Stream:
    """Work that is ordered, and nothing else."""

    def wait_stream(self, _other):
        pass

    def wait_event(self, _event):
        pass

    def record_event(self):
        return None

    def synchronize(self):
        pass


class Offloading:
    """TRL's context manager for a model: entered by a wrapped `loss`, left after backward."""

    def __init__(self, model, **options):
        from trl.models import activation_offloading as trl

        self.numbers, self.made = {}, 0
        # TRL looks for the head in what peft wraps, and is handed the model within that here.
        adapters = vars(model).pop("peft_config", None)
        with self.pretended():
            self.context = trl.get_act_offloading_ctx_manager(model, **options)
        if adapters is not None:
            model.peft_config = adapters

    def number(self, storage):
        """In an address's stead: no storage has another's, also of one that is gone."""
        key = storage._cdata
        if key not in self.numbers:
            self.numbers[key] = (1 + self.made) << 40
            self.made += 1
            weakref.finalize(storage, self.numbers.pop, key).atexit = False
        return self.numbers[key]

    @contextlib.contextmanager
    def pretended(self):
        """While active, streams and addresses are stood in for."""
        import psutil
        import torch

        with contextlib.ExitStack() as stack:
            def put(owner, name, value):
                stack.enter_context(mock.patch.object(owner, name, value))

            put(torch.cuda, "Stream", Stream)
            put(torch.cuda, "stream", lambda _stream: contextlib.nullcontext())
            put(torch.cuda, "current_stream", Stream)
            put(torch.cuda, "empty_cache", lambda: None)
            put(torch.accelerator, "current_accelerator", lambda **_: torch.device("cuda"))
            put(torch.UntypedStorage, "data_ptr", lambda storage: self.number(storage))
            put(torch.Tensor, "record_stream", lambda tensor, stream: None)
            put(psutil, "virtual_memory", lambda: mock.Mock(percent=0))
            yield

    def around(self, reference):
        """The reference whose forward pass enters the hooks."""
        def loss(model, inputs, target):
            self.stack = contextlib.ExitStack()
            self.stack.enter_context(self.pretended())
            self.stack.enter_context(self.context)
            return reference.loss(model, inputs, target)

        return dataclasses.replace(reference, loss=loss)

    @contextlib.contextmanager
    def backward(self, context):
        """Around backward(): `context` within the hooks, which are left behind it."""
        with context():
            yield
        self.stack.close()


class NoOptimizer:
    """What the loop calls where hooks have done all."""

    def __init__(self, handles):
        self.handles = handles

    def remove(self):
        for handle in self.handles:
            handle.remove()

    def step(self):
        pass

    def zero_grad(self, set_to_none=True):
        pass


def optimizer_in_backward(parameters, make):
    """Hooks on the parameters, each with an optimizer of its own."""
    def hooked(optimizer):
        def step(_parameter):
            optimizer.step()
            optimizer.zero_grad()

        return step

    return NoOptimizer([parameter.register_post_accumulate_grad_hook(hooked(make([parameter])))
                        for parameter in parameters if parameter.requires_grad])
