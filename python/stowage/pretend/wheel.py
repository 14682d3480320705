"""Whether the installed PyTorch can be recorded with: a CUDA build for Linux, of a known version."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from stowage.errors import StowageError

if TYPE_CHECKING:
    from types import ModuleType

FIRST_MINOR, LAST_MINOR = (2, 11), (2, 15)


def check_wheel(torch: ModuleType) -> int:
    """CUDA's major version in this torch. Raises StowageError where recording does not work with it."""
    version = torch.__version__
    if platform.system() != "Linux":
        raise StowageError(f"recording needs Linux; this is {platform.system()}",
                           "PyTorch's wheels for other systems have no CUDA kernels to dispatch to")
    if torch.version.cuda is None:
        kind = "ROCm" if torch.version.hip else "CPU-only"
        raise StowageError(
            f"torch {version} is a {kind} wheel: it has none of CUDA's operators to record",
            "install PyPI's ordinary Linux wheel, which needs no GPU: pip install --force-reinstall "
            f"torch=={version.partition('+')[0]}")
    numbers = tuple(int(part) for part in version.split(".")[:2])
    if not FIRST_MINOR <= numbers <= LAST_MINOR:
        first, last = (".".join(map(str, n)) for n in (FIRST_MINOR, LAST_MINOR))
        raise StowageError(f"torch {version} is not among the versions {first} to {last}",
                           f"pip install 'torch>={first},<{LAST_MINOR[0]}.{LAST_MINOR[1] + 1}'")
    major = int(torch.version.cuda.partition(".")[0])
    if major not in (12, 13):
        raise StowageError(f"torch {version} is built with CUDA {torch.version.cuda}",
                           "stowage knows CUDA 12 and 13")
    return major
