"""Parameters streamed by block: they lie in host memory, and come to the device before their block runs.

    copies  | a | b .......... | c ..........
    compute         | block a        | block b        | block c
    device  | a     | a b            | b c            | c

The next block's copy begins when a block is about to run, so that it has that block's kernels, and
those of the blocks between that are not streamed, to hide behind; two blocks' parameters are on the
device at a time. When the block returns they are let go.

Autograd saves parameters for backward. A saved tensor that lies in a block's piece is not kept: its
handle remembers the visit (the run of the block that saved it), and the first that backward asks for
brings the block's parameters once more, and begins the copy of the block before. They are let go when
the last of the visit's handles dies. A region of torch.utils.checkpoint runs the block again, which
brings them in the same way.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

from stowage.plans.saved_names import runs_backward
from stowage.plans.streamed_block import StreamedBlock, Upload, seen_by
from stowage.plans.streams import copies_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stowage.plans.events import Events
    from stowage.plans.stash import SavedHandle


class Visit:
    """One run of a block whose saved parameters backward may ask for. Its handles keep it alive, and it
    keeps the parameters that were brought for backward."""

    def __init__(self, streamed: StreamedModules, block: StreamedBlock) -> None:
        self.streamed, self.block, self.versions = streamed, block, block.versions()
        self.upload: Upload | None = None

    def tensor_of(self, handle: SavedHandle) -> torch.Tensor:
        """The handle's tensor. Raises RuntimeError where a parameter was written since, as PyTorch does
        without a plan."""
        if self.block.versions() != self.versions:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace "
                f"operation: a parameter of {self.block.path} was written since forward read it")
        if self.upload is None:
            self.upload = self.streamed.brought(self.block)
        self.upload.wait()
        return seen_by(handle, self.upload.piece)


class StreamedModules:
    """The plan's streamed blocks, in the order in which they run. `fall_back(tensors, reason, what)` is
    told of a block whose parameters go to the device for good."""

    def __init__(self, blocks: Sequence[StreamedBlock], device: torch.device, events: Events,
                 fall_back: Callable[[int, str, str], None]) -> None:
        self.blocks, self.device, self.events, self.fall_back = list(blocks), device, events, fall_back
        self.places = {id(block.module): place for place, block in enumerate(self.blocks)}
        self.copies = copies_for(device)
        self.ahead: tuple[StreamedBlock, Upload] | None = None
        self.visits: dict[int, Visit] = {}  # of blocks that run now, by their piece's storage
        self.is_off = False

    def modules(self) -> list[torch.nn.Module]:
        return [block.module for block in self.blocks]

    def around(self, forward: Callable[..., Any], module: torch.nn.Module) -> Callable[..., Any]:
        """The forward of a module, with its parameters on the device if it is a streamed one."""
        place = self.places.get(id(module))
        if place is None:
            return forward
        block = self.blocks[place]

        def run(*arguments: Any, **keywords: Any) -> Any:
            with self.running(block):
                return forward(*arguments, **keywords)

        return run

    @contextlib.contextmanager
    def running(self, block: StreamedBlock) -> Iterator[None]:
        if block.depth == 0 and not self.is_off and not block.is_settled:
            reason = self.misfit(block)
            if reason:
                self.settle(block, reason)
        if block.is_settled or self.is_off or block.depth > 0:
            yield
            return
        with torch.inference_mode(False):  # a parameter's data is no inference tensor
            upload = self.brought(block)
            block.put_on_device(upload)
        key = upload.piece.untyped_storage()._cdata
        visit = self.visits[key] = Visit(self, block)
        del upload
        block.depth += 1
        try:
            yield
        except BaseException:
            if not runs_backward():  # torch.utils.checkpoint ends a second run by an exception
                self.ahead = None
            raise
        finally:
            block.depth -= 1
            self.visits.pop(key, None)
            with torch.inference_mode(False):
                block.put_on_host()
            visit.versions = block.versions()

    def misfit(self, block: StreamedBlock) -> str:
        """Why the block cannot run with its parameters streamed; "": it can."""
        if torch.is_grad_enabled():
            for name, parameter in zip(block.names, block.parameters):
                if parameter.requires_grad:
                    return f"'{name}' gets a gradient in a run that is not under torch.no_grad()"
        return block.misfit()

    def settle(self, block: StreamedBlock, reason: str) -> None:
        if self.ahead is not None and self.ahead[0] is block:
            self.ahead = None
        block.settle(self.device)
        self.fall_back(len(block.parameters), reason, "keeps parameters on the device that {} streams")

    def brought(self, block: StreamedBlock) -> Upload:
        """The block's parameters on the device; the copy of the one that is needed next begins."""
        ahead, self.ahead = self.ahead, None
        upload = None
        if ahead is not None and ahead[0] is block and ahead[1].versions == block.versions():
            upload = ahead[1]
        del ahead  # another block's: its memory is let go before more is allocated
        if upload is None:
            upload = self.begin(block)
        place = self.places[id(block.module)] + (-1 if runs_backward() else 1)
        if 0 <= place < len(self.blocks) and not self.is_off:
            following = self.blocks[place]
            if not following.is_settled and following.depth == 0 and not following.misfit():
                self.ahead = (following, self.begin(following))
        return upload

    def begin(self, block: StreamedBlock) -> Upload:
        upload = Upload(block, self.copies)
        self.events.note("upload", block.path, upload.piece.numel())
        return upload

    def join(self, handle: SavedHandle) -> None:
        """A tensor is saved for backward: one that lies in the piece of a block that runs is not kept."""
        if not self.visits or handle.tensor is None:
            return
        visit = self.visits.get(handle.tensor.untyped_storage()._cdata)
        if visit is not None:
            handle.remember_layout()
            handle.visit, handle.tensor = visit, None

    def end(self) -> None:
        """The parameters are where they were, in memory of their own. A graph that is alive may still
        bring them for its backward."""
        self.is_off, self.ahead = True, None
        for block in self.blocks:
            if not block.is_settled:
                block.settle(None)
