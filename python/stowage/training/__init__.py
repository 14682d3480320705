"""How a step is run: the model with fake tensors in place of its own, its optimizer, the loop."""
