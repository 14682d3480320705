"""`@stowage.step`: the hook that tells a script's training step.

    @stowage.step
    def train_step(images, labels):
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

`python train.py` calls the function as if the hook were not there. `python -m stowage record
train.py` runs the script on a pretended device, where no tensor has memory, up to the first call;
then the step is recorded, the file is written, and the script ends.
"""

import contextlib
import functools
import pathlib
import runpy
import sys

from stowage.errors import StowageError

active = None  # the ScriptRecording that runs this script, if one does


class ScriptIsRecorded(BaseException):
    """Ends the script once its step is recorded. No mistake, so that no `except Exception` of the
    script catches it."""

    def __init__(self, recorded):
        super().__init__()
        self.recorded = recorded


def step(function=None, *, batch_axes=0):
    """Marks the function as a whole training step (or inference). `batch_axes` says which axis of
    its tensor arguments is the batch (stowage/training/batch_axes.py)."""
    if function is None:
        return functools.partial(step, batch_axes=batch_axes)

    @functools.wraps(function)
    def call(*arguments, **keywords):
        if active is None:
            return function(*arguments, **keywords)
        return active.record(function, arguments, keywords, batch_axes)

    return call


class ScriptRecording:
    """Records the first call of a marked function. `batch` replaces that of its arguments."""

    def __init__(self, session, batch, name, options):
        self.session, self.batch, self.name, self.options = session, batch, name, options

    def record(self, function, arguments, keywords, batch_axes):
        from stowage.record import record_function

        raise ScriptIsRecorded(record_function(
            function, arguments, keywords, self.batch, self.name, batch_axes, self.options,
            self.session))


@contextlib.contextmanager
def arguments_of(path, arguments):
    """sys.argv and sys.path as the script expects them."""
    before = sys.argv, sys.path[:]
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(pathlib.Path(path).resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = before


def record_script(path, batch, options, arguments=()):
    """RecordedStep of the script's marked function."""
    global active
    from stowage.pretend.session import pretended_cuda

    if not pathlib.Path(path).is_file():
        raise StowageError(f"there is no file '{path}'")
    with pretended_cuda(options.capability) as session, arguments_of(path, arguments):
        active = ScriptRecording(session, batch, pathlib.Path(path).stem, options)
        try:
            runpy.run_path(path, run_name="__main__")
        except ScriptIsRecorded as done:
            return done.recorded
        except StowageError:
            raise
        except SyntaxError as error:
            raise StowageError(f"{error.filename}:{error.lineno}: {error.msg}") from None
        except SystemExit as ended:
            raise StowageError(f"{path} ended with exit code {ended.code} before its step",
                               "its own options stand after --: record train.py -o s.json -- "
                               "--epochs 1") from None
        except Exception as error:
            from stowage.trace.failures import untraceable_script

            refusal = untraceable_script(error)
            if refusal is None:
                raise
            raise refusal from error
        finally:
            active = None
    raise StowageError(f"{path} ended without a call of a function with @stowage.step",
                       "mark the function that runs one training step (docs/record.md)")
