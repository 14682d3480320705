"""A recording as a step file (docs/step-file.md).

    affine.py     sizes at several batches: constant + slope * batch
    extents.py    whether a tensor stays within its storage at every batch
    tables.py     the file's tables of shapes, layouts, attributes and origins
    storages.py   which storages a step has, in an order that is the same at every batch
    classes.py    what each storage is, and how long it is kept
    saved.py      what autograd keeps for backward
    modules.py    the modules that run, and what they are given
    names.py      unique names of nodes and storages
    assemble.py   the whole file
    micro_batch.py the part of a step that each micro-batch runs again
    not_updated.py which trained parameters the step does not update
    layers.py     the list of layers
    settings.py   the settings
    check.py      what the program would refuse
    write.py      the file on disk: whole or not at all
"""
