"""Normalizations. A module in training mode normalizes a batch norm by the batch."""

from ..layers import Unsupported, rule


@rule("batch_norm")
def batch_norm(c, op, input, weight, bias, running_mean, running_var, training, momentum, eps,
               cudnn_enabled):
    if weight is not None and (c.real(weight).kind != "parameter" or bias is None):
        raise Unsupported("aten.batch_norm with a computed weight or without a bias")
    for buffer in (running_mean, running_var):
        if buffer is not None:
            c.used_buffers.add(buffer)
    c.emit("batch_norm", [input], op.outputs,
           {"eps": eps, "momentum": momentum, "affine": weight is not None,
            "track_running_stats": running_mean is not None, "training": bool(training)},
           [("weight", weight), ("bias", bias)])


@rule("layer_norm")
def layer_norm(c, op, input, normalized_shape, weight, bias, eps, cudnn_enable):
    c.emit("layer_norm", [input], op.outputs,
           {"axes": len(normalized_shape), "eps": eps, "affine": weight is not None,
            "bias": weight is None or bias is not None}, [("weight", weight), ("bias", bias)])


@rule("group_norm")
def group_norm(c, op, input, num_groups, weight, bias, eps, cudnn_enabled):
    if weight is not None and bias is None:
        raise Unsupported("aten.group_norm without a bias")
    c.emit("group_norm", [input], op.outputs,
           {"groups": num_groups, "eps": eps, "affine": weight is not None},
           [("weight", weight), ("bias", bias)])


@rule("instance_norm")
def instance_norm(c, op, input, weight, bias, running_mean, running_var, use_input_stats, momentum,
                  eps, cudnn_enabled):
    c.emit("instance_norm", [input], op.outputs,
           {"eps": eps, "momentum": momentum, "affine": weight is not None,
            "track_running_stats": running_mean is not None},
           [("weight", weight), ("bias", bias)])


@rule("rms_norm")
def rms_norm(c, op, input, normalized_shape, weight, eps):
    c.emit("rms_norm", [input], op.outputs,
           {"axes": len(normalized_shape), "eps": 1.1920928955078125e-07 if eps is None else eps,
            "affine": weight is not None}, [("weight", weight)])
