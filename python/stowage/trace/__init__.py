"""What a step does, call by call, as PyTorch's dispatcher sees it below autograd.

    recorder.py   the dispatch mode: nodes, storages and when each dies
    record.py     the data of a recording: NodeRecord, StorageRecord, StepRecord
    calls.py      a call's arguments, by the operator's schema, and its floating-point operations
    engine.py     what the autograd engine and linear do in place when no dispatch mode is active
    modules.py    which module is running
    places.py     which line of the user's source is running
    phases.py     forward, loss, backward, update
    updates.py    which parameters are updated
    saved.py      what autograd keeps for backward
    failures.py   what cannot be traced, with its place
"""
