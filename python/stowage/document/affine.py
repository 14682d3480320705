"""Sizes that were measured at several batches, as constant + slope * batch."""


class NotAffine(Exception):
    """A size that does not grow linearly with the batch, or steps that run other kernels at
    another batch; the message says where."""


class Affine:
    """Fits values at the batches: the first two give the line, the others check it. With one batch
    every value is a plain number."""

    def __init__(self, batches):
        self.batches = batches
        self.known = {}

    def fit(self, values):
        """A number, or [constant, slope]; None: they are not on a line through integers."""
        first = values[0]
        if all(value == first for value in values):
            return first
        if values in self.known:
            return self.known[values]
        (a, b), (va, vb) = self.batches[:2], values[:2]
        slope, rest = divmod(vb - va, b - a)
        constant = va - slope * a
        fits = rest == 0 and all(constant + slope * batch == value
                                 for batch, value in zip(self.batches, values))
        self.known[values] = [constant, slope] if fits else None
        return self.known[values]

    def sizes(self, shapes, where):
        """A tuple of sizes of as many tuples of numbers."""
        if all(shape == shapes[0] for shape in shapes):
            return shapes[0]
        fitted = []
        for values in zip(*shapes):
            size = self.fit(values)
            if size is None:
                raise NotAffine(f"{where}: {values} at the batches {tuple(self.batches)}")
            fitted.append(tuple(size) if isinstance(size, list) else size)
        return tuple(fitted)

    def size(self, values, where):
        fitted = self.fit(tuple(values))
        if fitted is None:
            raise NotAffine(f"{where}: {tuple(values)} at the batches {tuple(self.batches)}")
        return fitted
