"""What Theano allocates in a training step: the graphs that it compiles, without a GPU.

Small Keras networks are compiled by Theano for the CPU, and their optimised graphs read: in which
order the nodes run, which of them write over an argument (destroy_map), which parameters are
updated in place, how many convolutions' filter gradients live at once, and which filters reach
their convolution transposed, so that the GPU's convolutions copy them (gpu_contiguous). The
elementwise part and the scheduler are those of the GPU's graphs; the convolutions are other ops.

    pip install Theano==1.0.5 Keras==2.2.5 "numpy<1.20" "scipy<1.6" "h5py<3"   # Python 3.7
    python theano_graph.py > theano_graph.json
"""

import json
import os
import platform
import tempfile

os.environ["KERAS_BACKEND"] = "theano"
os.environ["THEANO_FLAGS"] = (
    "device=cpu,floatX=float32,blas.ldflags=,base_compiledir=" + tempfile.gettempdir() + "/theano"
)

import keras
import numpy
import theano
from keras import backend
from keras.layers import Conv2D, Dense, Flatten
from keras.models import Sequential
from keras.optimizers import SGD, Adam, RMSprop

CONVOLUTIONS = 6


def network(data_format, activation):
    backend.set_image_data_format(data_format)
    shape = (8, 8, 1) if data_format == "channels_last" else (1, 8, 8)
    model = Sequential()
    for i in range(CONVOLUTIONS):
        given = {"input_shape": shape} if i == 0 else {}
        model.add(Conv2D(8, (3, 3), padding="same", activation=activation, **given))
    model.add(Flatten())
    model.add(Dense(1))
    return model


def root(variable):
    """The variable whose memory this one is or writes over."""
    while variable.owner is not None:
        op, place = variable.owner.op, variable.owner.outputs.index(variable)
        shared = getattr(op, "destroy_map", {}).get(place) or getattr(op, "view_map", {}).get(place)
        if not shared:
            return variable
        variable = variable.owner.inputs[shared[0]]
    return variable


def unviewed(variable):
    while variable.owner is not None and getattr(variable.owner.op, "view_map", {}):
        variable = variable.owner.inputs[0]
    return variable


def measured(data_format, activation, optimizer):
    model = network(data_format, activation)
    model.compile(loss="mse", optimizer=optimizer)
    model._make_train_function()
    graph = model.train_function.function.maker.fgraph
    nodes = graph.toposort()
    last_use = {}
    for place, node in enumerate(nodes):
        for variable in node.inputs:
            last_use[root(variable)] = place
    trained = {str(weight) for weight in model.trainable_weights}
    updates = [
        (graph.inputs[where], graph.outputs[which]) for which, where in graph.update_outputs.items()
    ] if hasattr(graph, "update_outputs") else []
    if not updates:
        maker = model.train_function.function.maker
        given = [spec for spec in maker.expanded_inputs if spec.update is not None]
        outputs = graph.outputs[len(graph.outputs) - len(given):]
        inputs = [graph.inputs[maker.expanded_inputs.index(spec)] for spec in given]
        updates = list(zip(inputs, outputs))
    large = [(old, new) for old, new in updates if old.type.ndim in (2, 4)]
    gradients = [
        (place, last_use[node.outputs[0]])
        for place, node in enumerate(nodes)
        if type(node.op).__name__ == "CorrMM_gradWeights"
    ]
    alive = [sum(1 for a, b in gradients if a <= place <= b) for place in range(len(nodes))]
    forward = [node for node in nodes if type(node.op).__name__ == "CorrMM"]
    kernels = [unviewed(node.inputs[1]) for node in forward]
    transposed = sum(
        any("DimShuffle" in str(op) for op in ops_between(node.inputs[1])) for node in forward
    )
    last_gradient = max(place for place, _ in gradients)
    places = {node: place for place, node in enumerate(nodes)}
    early = sum(
        1 for old, new in large
        if str(old) in trained and new.owner is not None and places[new.owner] < last_gradient
    )
    kept = [
        root(node.outputs[0]) for node in forward
        if last_use[root(node.outputs[0])] > places[forward[-1]]
    ]
    return {
        "data_format": data_format,
        "activation": activation,
        "optimizer": type(model.optimizer).__name__,
        "momentum": float(backend.get_value(model.optimizer.momentum))
        if hasattr(model.optimizer, "momentum") else None,
        "large_variables": len(large),
        "large_parameters": sum(1 for old, _ in large if str(old) in trained),
        "updated_in_place": sum(1 for old, new in large if root(new) is old),
        "convolutions": len(forward),
        "filters_transposed": transposed,
        "filters_are_parameters": sum(1 for kernel in kernels if kernel.owner is None),
        "convolution_results_kept_for_backward": len(set(kept)),
        "large_parameters_updated_before_the_last_filter_gradient": early,
        "most_filter_gradients_alive": max(alive),
    }


def ops_between(variable):
    ops = []
    while variable.owner is not None:
        ops.append(variable.owner.op)
        variable = variable.owner.inputs[0]
    return ops


def main():
    cases = [
        ("channels_first", "linear", lambda: SGD(lr=0.01)),
        ("channels_last", "linear", lambda: SGD(lr=0.01)),
        ("channels_first", "relu", lambda: SGD(lr=0.01, momentum=0.9)),
        ("channels_first", "linear", lambda: Adam()),
        ("channels_first", "linear", lambda: RMSprop()),
    ]
    print(json.dumps({
        "versions": {
            "theano": theano.__version__,
            "keras": keras.__version__,
            "numpy": numpy.__version__,
            "python": platform.python_version(),
        },
        "cases": [measured(form, act, optimizer()) for form, act, optimizer in cases],
    }, indent=1))


if __name__ == "__main__":
    main()
