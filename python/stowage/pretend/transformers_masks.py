"""transformers looks at the values of position ids to find packed sequences; fake ones have none."""

import contextlib
import sys
from unittest import mock


@contextlib.contextmanager
def no_packed_sequences():
    """Without effect where transformers is not loaded, or has no such look."""
    module = sys.modules.get("transformers.masking_utils")
    if module is None or not hasattr(module, "find_packed_sequence_indices"):
        yield
        return
    with mock.patch.object(module, "find_packed_sequence_indices", lambda *_arguments, **_options: None):
        yield
