"""Parameters and constants that several modules read, moved to the module that holds them all."""


def hoist_shared(layers, made):
    """Moves each parameter's or constant's layer that modules share out of the first of them, so
    that it stands in the module that holds all of its readers, before the first."""
    readers = {}
    for layer in layers:
        for value in layer.inputs:
            if value in made:
                readers.setdefault(value, []).append(layer)
    for layer in [x for x in layers if x.outputs and x.outputs[0] in readers]:
        scopes = [reader.scopes for reader in readers[layer.outputs[0]]]
        depth = shared_depth([layer.scopes, *scopes])
        if depth == len(layer.scopes):
            continue
        inner, at = layer.scopes[:depth + 1], layers.index(layer)
        while at > 0 and layers[at - 1].scopes[:depth + 1] == inner:
            at -= 1
        layers.remove(layer)
        layers.insert(at, layer)
        layer.scopes = layer.scopes[:depth]


def shared_depth(several):
    """How many scopes all of them begin with."""
    depth = 0
    while all(len(s) > depth for s in several) and len({s[depth] for s in several}) == 1:
        depth += 1
    return depth
