"""A CUDA device that does not exist: PyTorch's CUDA build, without a driver or a GPU.

FakeTensorMode dispatches every operator as CUDA would and allocates nothing. Where it differs from
CUDA it is corrected here, each difference in a file of its own, and the correction ends with the
recording:

    driver.py          the autograd engine asks the driver whether a context exists, attention and
                       convolutions ask which device there is: relocation slots of the loaded
                       libraries are answered by functions of ours (elf_slots.py)
    fake_mode.py       FakeTensorMode, without the device that torch.cuda speaks of; the guard of the
                       device, put back afterwards
    cuda_module.py     torch.cuda says that there is a device
    kernel_choice.py   attention and convolutions choose their kernels as on that device, optimizers
                       choose foreach for fake tensors as for real ones
    recurrent.py       cuDNN's recurrent networks: shapes and layouts
    value_checks.py    GradScaler, transformers and trunc_normal_ do not look at values
    module_moves.py    model.cuda() and model.half() on fake tensors
    data_loading.py    data loaders run for real
    host_values.py     small tensors of the CPU keep their values
    wheel.py           whether the installed PyTorch can be recorded with
    session.py         all of them together
"""
