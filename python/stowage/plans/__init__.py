"""Plans for PyTorch (docs/apply.md): how saved tensors are named, and how eager PyTorch carries a plan
out.

    saved_names.py   the keys of saved tensors, for recordings and for plans
    dimensions.py    sizes that follow the batch
    plan_file.py     the plan's file
    offload.py       autograd's pack and unpack hooks, and the state of a pass
    stash.py         a storage on its way to the host and back
    streams.py       copies beside the computation
    host_pool.py     pinned host memory
    host_updates.py  the optimizer on the CPU
    checkpoint.py    a run under torch.utils.checkpoint
    region_names.py  the names of what runs again in backward
    region_inputs.py what that is given in the second run
    regions.py       what runs again: modules, and rows of an nn.Sequential
    host_random.py   random numbers that are not PyTorch's, drawn again
    no_hooks.py      where PyTorch allows no hooks
    stream.py        parameters that are on the device while their block runs
    streamed_block.py  such a block, on the host and on the device
    stream_places.py   the blocks that a plan names, in a model
    chunks.py        an inference in parts of its batch
    module_calls.py  modules whose forward is run in another way
    events.py        what was done, in order
    applied.py       all of it, applied to a model
    verification.py  what was done, compared with the plan
    rehearsal.py     a plan on the pretended device
"""
