"""Plans for PyTorch (docs/apply.md): how saved tensors are named, and how eager PyTorch carries a plan
out.

    saved_names.py   the keys of saved tensors, for recordings and for plans
"""
