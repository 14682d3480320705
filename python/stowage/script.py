"""`@stowage.step`: the decorator that marks a script's training step.

    @stowage.step
    def train_step(images, labels):
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

`python train.py` calls the function as if the decorator were not there. `python -m stowage record
train.py` runs the script on a pretended device, where no tensor has memory, up to the first call;
then the step is recorded, the file is written, and the script ends.
"""

from __future__ import annotations

import contextlib
import functools
import pathlib
import runpy
import sys
from typing import TYPE_CHECKING, Any

from stowage import active_script
from stowage.active_script import ActiveScript, ScriptIsRecorded
from stowage.errors import StowageError
from stowage.record import RecordedStep, record_function
from stowage.sources.script_arguments import script_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stowage.options import RecordOptions
    from stowage.training.batch_axes import Axes


def step(function: Callable[..., Any] | None = None, *,
         batch_axes: Axes = "first") -> Callable[..., Any]:
    """Marks the function as a whole training step (or inference). `batch_axes` says which axis of
    its tensor arguments is the batch (stowage/training/batch_axes.py)."""
    if function is None:
        return functools.partial(step, batch_axes=batch_axes)

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        script = active_script.active
        if script is None:
            return function(*arguments, **keywords)
        raise ScriptIsRecorded(record_function(
            function, arguments, keywords, script.batch, script.name, batch_axes, script.options,
            script.session))

    return call


@contextlib.contextmanager
def folder_searched(path: str) -> Iterator[None]:
    """While active, the script's folder is searched for what it imports, as Python does."""
    before = sys.path[:]
    sys.path.insert(0, str(pathlib.Path(path).resolve().parent))
    try:
        yield
    finally:
        sys.path[:] = before


def record_script(path: str, batch: int | None, options: RecordOptions,
                  arguments: Sequence[str] = ()) -> RecordedStep:
    """RecordedStep of the script's marked function."""
    from stowage.pretend.session import pretended_cuda

    if not pathlib.Path(path).is_file():
        raise StowageError(f"there is no file '{path}'")
    with (pretended_cuda(options.capability) as session, folder_searched(path),
          script_arguments(path, arguments)):
        active_script.active = ActiveScript(session, batch, pathlib.Path(path).stem, options)
        try:
            runpy.run_path(path, run_name="__main__")
        except ScriptIsRecorded as done:
            return done.recorded
        except StowageError:
            raise
        except SyntaxError as error:
            raise StowageError(f"{error.filename}:{error.lineno}: {error.msg}") from None
        except Exception as error:
            from stowage.trace.failures import untraceable_script

            refusal = untraceable_script(error)
            if refusal is None:
                raise
            raise refusal from error
        finally:
            active_script.active = None
    raise StowageError(f"{path} ended without a call of a function with @stowage.step",
                       "mark the function that runs one training step (docs/record.md)")
