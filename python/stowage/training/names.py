"""The words that options take, without torch, so that help is quick."""

OPTIMIZERS = ("sgd", "sgd-momentum", "momentum", "nesterov", "adam", "adamw", "amsgrad", "adagrad",
              "rmsprop", "rmsprop-momentum", "rmsprop-centered", "adadelta", "adamax", "nadam",
              "radam", "adafactor")
IMPLEMENTATIONS = ("default", "foreach", "fused", "for-loop")
PRECISIONS = ("fp32", "fp64", "fp16", "bf16", "amp-fp16", "amp-bf16")
MODES = ("train", "inference")
