"""A CUDA device that does not exist: PyTorch's CUDA build, without a driver or a GPU.

FakeTensorMode dispatches every operator as CUDA would and allocates nothing. What keeps it from
being what CUDA does is repaired here, each in a file of its own, and undone on leaving:

    driver.py          the autograd engine asks the driver whether a context exists, attention and
                       convolutions ask which device there is: relocation slots of the loaded
                       libraries are answered by functions of ours (elf_slots.py)
    device_guard.py    the guard of the device, put back afterwards
    fake_mode.py       FakeTensorMode, without the device that torch.cuda speaks of
    cuda_module.py     torch.cuda says that there is a device
    kernel_choice.py   attention and convolutions choose their kernels as on that device
    optimizers.py      foreach is chosen for fake tensors as for real ones
    recurrent.py       cuDNN's recurrent networks: shapes and layouts
    gradient_scaler.py GradScaler does not look at values
    transformers_masks.py   nor does transformers at position ids
    module_moves.py    model.cuda() and model.half() on fake tensors
    data_loading.py    data loaders run for real
    host_values.py     small tensors of the CPU keep their values
    session.py         all of them together
"""
