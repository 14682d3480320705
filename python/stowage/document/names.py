"""Unique names."""


class Names:
    """Gives each name once: "relu", then "relu.2"."""

    def __init__(self):
        self.counts = {}
        self.taken = set()

    def unique(self, name):
        name = "".join(c for c in name if c.isprintable())[:4000] or "tensor"
        while True:
            count = self.counts[name] = self.counts.get(name, 0) + 1
            candidate = name if count == 1 else f"{name}.{count}"
            if candidate not in self.taken:
                self.taken.add(candidate)
                return candidate


def short(kernel):
    """"aten::add.Tensor" -> "add"."""
    return kernel.rpartition("::")[2].partition(".")[0]


def node_name(node):
    """"layer1.0.conv1.convolution"; without a layer the phase stands in its place."""
    return f"{node.layer or node.phase}.{short(node.kernel)}"
