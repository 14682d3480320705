"""blas_workspace.json: the workspace that PyTorch gives cuBLAS, by compute capability.

PyTorch's own code is asked (torch.backends.cuda.cublas_workspace_size), for devices that
fake_cuda_shim.cpp pretends to be there.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import fake_cuda

HERE = pathlib.Path(__file__).parent
CAPABILITIES = [7, 8, 9, 10, 11, 12]
QUESTION = """
import ctypes, torch
ctypes.CDLL(None).stowage_show_devices(2)
print(torch.backends.cuda.cublas_workspace_size())
"""


def answer(major):
    with tempfile.TemporaryDirectory() as folder:
        return answer_with(fake_cuda.build_shim(folder, f"-DSTOWAGE_FAKE_MAJOR={major}"))


def answer_with(shim):
    environment = dict(os.environ, LD_PRELOAD=str(shim))
    asked = subprocess.run([sys.executable, "-c", QUESTION], env=environment, check=True,
                           capture_output=True, text=True)
    return int(asked.stdout)


def main():
    import torch

    bytes_by_major = {major: answer(major) for major in CAPABILITIES}
    result = {"torch": torch.__version__, "bytes_by_major": bytes_by_major}
    (HERE / "blas_workspace.json").write_text(json.dumps(result, indent=1) + "\n")


main()
