"""Which modules and parameters of the models a plan streams, held to the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeAlias

import torch

from stowage.errors import StowageError
from stowage.plans.module_calls import check_callable
from stowage.plans.offload import is_plain
from stowage.plans.streamed_block import StreamedBlock, aligned, put_data, size_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stowage.plans.plan_file import Plan, Streamed

Owner: TypeAlias = "tuple[torch.nn.Module, str, torch.nn.Parameter]"


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether its elements fill a piece of memory without gaps, each once."""
    expected = 1
    for stride, size in sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.shape)
                               if size != 1):
        if stride != expected:
            return False
        expected *= size
    return True


class StreamPlaces:
    """The parameters of the models, by their whole names; `modules`: {path: module}."""

    def __init__(self, plan: Plan, roots: dict[str, torch.nn.Module],
                 modules: dict[str, torch.nn.Module]) -> None:
        self.plan, self.modules = plan, modules
        self.parameters: dict[str, torch.nn.Parameter] = {}
        self.owners: dict[int, list[Owner]] = {}  # by the parameter's id
        self.users: dict[int, int] = {}  # tensors of the models in a storage, by its address
        for prefix, root in roots.items():
            for name, parameter in root.named_parameters(remove_duplicate=False):
                self.parameters[".".join(part for part in (prefix, name) if part)] = parameter
            for part in root.modules():
                for name, held in part._parameters.items():
                    if held is not None:
                        self.owners.setdefault(id(held), []).append((part, name, held))
        for one in {id(one): one for one in self.parameters.values()}.values():
            if is_plain(one):
                key = one.untyped_storage()._cdata
                self.users[key] = self.users.get(key, 0) + 1

    def refuse(self, difference: str) -> NoReturn:
        raise StowageError(f"{self.plan.source} is for another model ('{self.plan.model}'): {difference}",
                           "record this model's step, and plan it")

    def blocks(self, pinned: bool) -> list[StreamedBlock]:
        """The plan's blocks, their parameters on the host. Raises StowageError, and then nothing has
        moved, for what the models do not have as the plan says."""
        found = [(planned, *self.found(planned)) for planned in self.plan.stream]
        made: list[StreamedBlock] = []
        try:
            for planned, module, parameters in found:
                owners = [owner for one in parameters.values() for owner in self.owners[id(one)]]
                made.append(StreamedBlock(planned, module, parameters, owners, pinned))
        except BaseException:
            for block in made:
                block.settle(None)
            raise
        return made

    def found(self, planned: Streamed) -> tuple[torch.nn.Module, dict[str, torch.nn.Parameter]]:
        path = planned.module
        module = self.modules.get(path)
        if module is None:
            self.refuse(f"it streams a module '{path}', which this model does not have")
        check_callable(path, module, "streamed", "streamed parameters")
        inside = {id(part) for part in module.modules()}
        parameters = {}
        for name in planned.parameters:
            parameter = self.parameters.get(name)
            if parameter is None:
                self.refuse(f"it streams a parameter '{name}', which this model does not have")
            self.check_parameter(name, parameter, path, inside)
            parameters[name] = parameter
        size = sum(aligned(size_of(one)) for one in parameters.values())
        if size != planned.bytes:
            self.refuse(f"the streamed parameters of '{path}' take {size} bytes, and the plan has "
                        f"{planned.bytes}")
        return module, parameters

    def check_parameter(self, name: str, parameter: torch.nn.Parameter, path: str,
                        inside: set[int]) -> None:
        if any(id(part) not in inside for part, _, _ in self.owners[id(parameter)]):
            self.refuse(f"'{name}' is a parameter of more than '{path}'")
        if self.plan.trains and parameter.requires_grad:
            self.refuse(f"it streams '{name}', which is trained here")
        if any(hasattr(part, "_flat_weights") for part, _, _ in self.owners[id(parameter)]):
            raise StowageError(f"'{name}' is of a recurrent module, which keeps its parameters in a list "
                               "of its own: it is not streamed",
                               "make a plan without streamed parameters")
        if not is_plain(parameter):
            raise StowageError(f"'{name}' is a {type(parameter).__name__}, of more than bytes and sizes: "
                               "it is not streamed", "make a plan for the model as it is here")
        is_alone = (self.users[parameter.untyped_storage()._cdata] == 1 and is_dense(parameter) and
                    parameter.untyped_storage().nbytes() == size_of(parameter))
        if not is_alone:
            raise StowageError(f"'{name}' shares its memory with other tensors: it is not streamed",
                               "apply the plan before other libraries flatten the parameters")


def staying(roots: dict[str, torch.nn.Module],
            blocks: list[StreamedBlock]) -> Iterator[tuple[torch.nn.Module, str, torch.Tensor]]:
    """The parameters and buffers that are not streamed, with their places."""
    streamed = {id(one) for block in blocks for one in block.parameters}
    for root in roots.values():
        for part in root.modules():
            for table in (part._parameters, part._buffers):
                for name, tensor in table.items():
                    if tensor is not None and id(tensor) not in streamed:
                        yield part, name, tensor


def move_staying(roots: dict[str, torch.nn.Module], blocks: list[StreamedBlock],
                 device: torch.device) -> None:
    """What model.to(device) does, to all that is not streamed."""
    buffers: dict[int, torch.Tensor] = {}
    for part, name, tensor in list(staying(roots, blocks)):
        if name in part._buffers:
            moved = buffers.setdefault(id(tensor), tensor.to(device))
            part._buffers[name] = moved
        elif tensor.device != device:
            with torch.no_grad():
                put_data(tensor, tensor.detach().to(device))
                if tensor.grad is not None:
                    tensor.grad = tensor.grad.to(device)
