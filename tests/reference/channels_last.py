"""Models and inputs with their channels innermost, as `.to(memory_format=torch.channels_last)` leaves
them; channels_last_3d where a tensor has five axes."""


def laid_out(tensor):
    """The tensor in that format, if it is an image, a volume or a filter."""
    import torch

    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if tensor.dim() not in formats:
        return tensor
    return tensor.to(memory_format=formats[tensor.dim()])


def lay_out(model):
    """All parameters and buffers of the model, in place, as nn.Module.to does."""
    import torch

    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            tensor.data = laid_out(tensor.data)
    return model
