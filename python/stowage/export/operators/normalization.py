"""Normalizations. A module in training mode normalizes a batch norm by the batch."""

from ..layers import Unsupported, rule


@rule("batch_norm")
def batch_norm(c, op, input, weight, bias, running_mean, running_var, training, momentum, eps,
               cudnn_enabled):
    computed = [v for v in (weight, bias) if v is not None and c.real(v).kind != "parameter"]
    if computed:
        if running_mean is not None or len(computed) != sum(v is not None for v in (weight, bias)):
            raise Unsupported("aten.batch_norm with one of weight and bias computed")
        c.emit("batch_norm", [input, *computed], op.outputs,
               {"eps": eps, "momentum": momentum, "affine": False, "track_running_stats": False,
                "training": bool(training)})
        return
    for buffer in (running_mean, running_var):
        if buffer is not None:
            c.used_buffers.add(buffer)
    c.emit("batch_norm", [input], op.outputs,
           {"eps": eps, "momentum": momentum, "affine": weight is not None,
            "track_running_stats": running_mean is not None, "training": bool(training),
            **({"bias": False} if weight is not None and bias is None else {})},
           [("weight", weight), ("bias", bias)])


@rule("layer_norm")
def layer_norm(c, op, input, normalized_shape, weight, bias, eps, cudnn_enable):
    c.emit("layer_norm", [input], op.outputs,
           {"axes": len(normalized_shape), "eps": eps, "affine": weight is not None,
            "bias": weight is None or bias is not None}, [("weight", weight), ("bias", bias)])


@rule("group_norm")
def group_norm(c, op, input, num_groups, weight, bias, eps, cudnn_enabled):
    without_bias = weight is not None and bias is None
    c.emit("group_norm", [input], op.outputs,
           {"groups": num_groups, "eps": eps, "affine": weight is not None,
            **({"bias": False} if without_bias else {})},
           [("weight", weight), ("bias", bias)])


@rule("instance_norm")
def instance_norm(c, op, input, weight, bias, running_mean, running_var, use_input_stats, momentum,
                  eps, cudnn_enabled):
    for buffer in (running_mean, running_var):
        if buffer is not None:
            c.used_buffers.add(buffer)
    c.emit("instance_norm", [input], op.outputs,
           {"eps": eps, "momentum": momentum, "affine": weight is not None,
            "track_running_stats": running_mean is not None},
           [("weight", weight), ("bias", bias)])


@rule("rms_norm")
def rms_norm(c, op, input, normalized_shape, weight, eps):
    c.emit("rms_norm", [input], op.outputs,
           {"axes": len(normalized_shape), "eps": 1.1920928955078125e-07 if eps is None else eps,
            "affine": weight is not None}, [("weight", weight)])
