"""What the exporter must know of the catalogue: names, defaults, lists that one number may stand for."""

# What `stowage ops` lists (tests/python/test_export_catalogue.py holds them against each other).
OPERATORS = set("""
conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d linear matmul einsum
batch_norm layer_norm group_norm instance_norm rms_norm rms_norm_plus_one local_response_norm relu
relu6 leaky_relu prelu elu selu celu gelu silu mish hardswish hardsigmoid hardtanh sigmoid tanh
softplus log_sigmoid glu swiglu softmax log_softmax max_pool1d max_pool2d max_pool3d avg_pool1d
avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d pad upsample pixel_shuffle
pixel_unshuffle dropout feature_dropout drop_path add sub mul div maximum minimum addcmul addcdiv
scale pow sqrt rsqrt reciprocal abs sign floor ceil round trunc exp expm1 log log1p sin cos erf
clamp mean sum amax amin var std
norm max min argmax argmin topk sort argsort cumsum concat stack split slice reshape flatten transpose contiguous
roll expand tile repeat_interleave unfold fold index_select index gather index_add scatter scatter_add slice_scatter
compare logical where masked_fill tril triu identity cast constant embedding one_hot positions
parameter rotary_table rotary relative_position_bias relative_position_buckets lstm gru rnn
scaled_dot_product_attention cross_entropy nll mse l1 bce bce_with_logits kl_div routed_experts
custom
""".split())
# Axes that fused attention's query may have, as key and value then.
ATTENTION_AXES = (3, 4, 5)

DEFAULTS = {
    "conv": {"stride": 1, "padding": 0, "output_padding": 0, "dilation": 1, "groups": 1,
             "bias": True},
    "linear": {"bias": True},
    "matmul": {"transpose_a": False, "transpose_b": False},
    "batch_norm": {"eps": 1e-5, "momentum": 0.1, "affine": True, "track_running_stats": True,
                   "training": True},
    "layer_norm": {"axes": 1, "eps": 1e-5, "affine": True, "bias": True},
    "group_norm": {"eps": 1e-5, "affine": True, "bias": True},
    "instance_norm": {"eps": 1e-5, "momentum": 0.1, "affine": False, "track_running_stats": False},
    "rms_norm": {"axes": 1, "eps": 1e-6, "affine": True, "implementation": "fused"},
    "leaky_relu": {"negative_slope": 0.01},
    "elu": {"alpha": 1},
    "gelu": {"approximate": "none"},
    "softplus": {"beta": 1, "threshold": 20},
    "glu": {"axis": -1},
    "max_pool": {"padding": 0, "dilation": 1, "ceil_mode": False},
    "avg_pool": {"padding": 0, "ceil_mode": False, "count_include_pad": True},
    "pad": {"before": [0], "after": [0], "mode": "constant", "value": 0},
    "upsample": {"mode": "nearest", "align_corners": False},
    "drop_path": {"as": "torchvision"},
    "scale": {"factor": 1, "offset": 0, "learned": False},
    "mean": {"axes": [], "keep": False},
    "sum": {"axes": [], "keep": False},
    "slice": {"start": 0, "step": 1},
    "flatten": {"start": 1, "end": -1},
    "constant": {"shape": [], "dtype": "float32", "value": 0, "buffer": False},
    "embedding": {"padding_index": -1},
    "lstm": {"layers": 1, "bidirectional": False, "dropout": 0, "batch_first": False, "bias": True,
             "states": False},
    "gru": {"layers": 1, "bidirectional": False, "dropout": 0, "batch_first": False, "bias": True,
            "states": False},
    "rnn": {"layers": 1, "bidirectional": False, "dropout": 0, "batch_first": False, "bias": True,
            "states": False, "nonlinearity": "tanh"},
    "celu": {"alpha": 1},
    "addcmul": {"value": 1},
    "addcdiv": {"value": 1},
    "norm": {"p": 2, "axes": [], "keep": False},
    "amax": {"axes": [], "keep": False},
    "amin": {"axes": [], "keep": False},
    "var": {"axes": [], "correction": 1, "keep": False},
    "std": {"axes": [], "correction": 1, "keep": False},
    "index": {"axis": 0},
    "topk": {"axis": -1, "largest": True},
    "sort": {"axis": -1, "descending": False},
    "argsort": {"axis": -1, "descending": False},
    "slice_scatter": {"start": []},
    "unfold": {"stride": 1, "padding": 0, "dilation": 1},
    "fold": {"stride": 1, "padding": 0, "dilation": 1},
    "scaled_dot_product_attention": {"causal": False, "dropout": 0, "scale": 0},
    "cross_entropy": {"ignore_index": -100, "label_smoothing": 0, "weight": 1},
    "nll": {"ignore_index": -100, "weight": 1},
}
# Where the list has a fixed length.
FIXED_LISTS = {"kernel", "stride", "padding", "dilation", "output_padding", "window"}
LISTS_OF_SIZES = {"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
                  "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "upsample"}


def defaults_of(operator):
    for name in (operator, operator.rstrip("123d"), operator.partition("_transpose")[0].rstrip(
            "123d")):
        if name in DEFAULTS:
            return {"in_place": False, "frozen": False, **DEFAULTS[name]}
    return {"in_place": False, "frozen": False}


def shortened(operator, name, value):
    """A list of equal numbers as one number, where the catalogue reads that."""
    fixed = name in FIXED_LISTS or (name == "size" and operator in LISTS_OF_SIZES)
    if fixed and isinstance(value, list) and len(set(map(str, value))) == 1:
        return value[0]
    return value


def attributes_of(layer):
    """The layer's attributes, short. Defaults are left out where no number stands for them: those
    of a number stay, since another instance of the block may have another."""
    defaults = defaults_of(layer.operator)
    result = {}
    for name, value in layer.attributes.items():
        value = shortened(layer.operator, name, value)
        if isinstance(value, (str, list)) and value == defaults.get(name):
            continue
        result[name] = value
    return result
