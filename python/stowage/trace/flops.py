"""Floating-point operations of products, convolutions and attention, by PyTorch's own formulas."""

from torch.utils.flop_counter import flop_registry


def flops_of(operator, arguments, options, result):
    """A multiply-add counts two; 0 for all other operators."""
    formula = flop_registry.get(operator._overloadpacket)
    if formula is None:
        return 0
    try:
        return int(formula(*arguments, **options, out_val=result))
    except (AssertionError, TypeError, ValueError, NotImplementedError, RuntimeError):
        return 0  # a call of a form that the formula does not know
