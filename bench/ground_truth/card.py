"""Describes the GPU and the software, for the head of the results. Run as a program it prints JSON.

The launcher runs it as a process of its own, so that the launcher itself never loads torch or makes
a CUDA context.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform

import nvml

# Settings in the environment that change how much memory a step takes.
ENVIRONMENT = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING",
               "CUDA_MODULE_LOADING", "CUBLAS_WORKSPACE_CONFIG",
               "CUBLASLT_WORKSPACE_SIZE", "NVIDIA_TF32_OVERRIDE", "TORCH_CUDNN_V8_API_DISABLED",
               "TORCH_BLAS_PREFER_CUBLASLT")
PACKAGES = ("torch", "torchvision", "timm", "transformers")


def version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def software(device: str) -> dict:
    """Versions, and the environment's settings that are set. `device` is "cuda" or "cpu"."""
    import torch
    cuda = device == "cuda"
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        **{package: version(package) for package in PACKAGES},
        "torch_build": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if cuda else None,
        "environment": {name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
    }


def reader_for_first_gpu(torch) -> tuple[nvml.Reader | None, str | None]:
    """A reader for the GPU that torch calls cuda:0 (CUDA_VISIBLE_DEVICES renumbers), and its UUID."""
    uuid = getattr(torch.cuda.get_device_properties(0), "uuid", None)
    names = [f"GPU-{uuid}", f"MIG-{uuid}"] if uuid else []
    for name in names:
        reader = nvml.open_reader(name)
        if reader:
            return reader, name
    if not uuid and torch.cuda.device_count() == 1 and "CUDA_VISIBLE_DEVICES" not in os.environ:
        return nvml.open_reader(None), None
    return None, None


def card() -> dict:
    """The first CUDA device. SystemExit(3) if there is none."""
    import torch
    if not torch.cuda.is_available():
        raise SystemExit(3)
    properties = torch.cuda.get_device_properties(0)
    reader, uuid = reader_for_first_gpu(torch)
    description = {
        "name": properties.name,
        "uuid": uuid,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "multiprocessors": properties.multi_processor_count,
        "torch_total_bytes": properties.total_memory,
        "nvml_total_bytes": None, "driver": None, "pcie": None,
        "nvml_reader": reader.name if reader else None,
    }
    for field, question in (("nvml_total_bytes", "memory"), ("driver", "driver"), ("pcie", "pcie")):
        try:
            answer = getattr(reader, question)() if reader else None
        except nvml.Unavailable:
            answer = None
        description[field] = answer[0] if question == "memory" and answer else answer
    return description


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    device = parser.parse_args().device
    print(json.dumps({"card": card() if device == "cuda" else None, "software": software(device)}))


if __name__ == "__main__":
    main()
