"""Numbers along a chain, as an expression in `index`.

`sequence_form(sequences)` takes one sequence an instance and gives (rows, write): the few numbers
of each instance, and what makes of their texts the expression. The same form serves all instances.
"""

import functools

from .blocks import ANY, Atom

TOLERANCE = 1e-9


def sequence_form(sequences):
    for form in (constant, first_and_others, alternating, linear):
        found = form(sequences)
        if found is not None:
            return found
    return runs(sequences)


def one_of(atoms):
    """The one number that the atoms are; None where they differ; ANY where none is known."""
    known = {a for a in atoms if a is not ANY}
    if not known:
        return ANY
    return known.pop() if len(known) == 1 else None


def constant(sequences):
    row = [one_of(s) for s in sequences]
    return None if None in row else ([row], lambda text: text)


def first_and_others(sequences):
    first, others = [s[0] for s in sequences], [one_of(s[1:]) for s in sequences]
    if None in others:
        return None
    return [first, others], functools.partial(choice, "index == 0", "index != 0")


def alternating(sequences):
    even, odd = [one_of(s[::2]) for s in sequences], [one_of(s[1::2]) for s in sequences]
    if None in even or None in odd:
        return None
    return [even, odd], functools.partial(choice, "index % 2 == 0", "index % 2 == 1")


def choice(condition, otherwise, a, b):
    if a == b:
        return a
    if (a, b) == ("true", "false"):
        return condition
    if (a, b) == ("false", "true"):
        return otherwise
    return f"{a} if {condition} else {b}"


def linear(sequences):
    starts, steps = [], []
    for sequence in sequences:
        known = [(n, a.value) for n, a in enumerate(sequence) if a is not ANY]
        if any(a is not ANY and (a.symbol or isinstance(a.value, bool)) for a in sequence):
            return None
        if not known:
            return None
        (m, low), (n, high) = known[0], known[-1]
        step = 0 if n == m else (high - low) / (n - m)
        if all(type(v) is int for _, v in known):
            if step != int(step):
                return None
            step = int(step)
        start = low - m * step
        if any(abs(start + k * step - v) > TOLERANCE for k, v in known):
            return None
        starts.append(tidy(start))
        steps.append(tidy(step))
    return [starts, steps], lambda a, b: f"{b} * index" if a == "0" else f"{a} + {b} * index"


def tidy(number):
    return Atom(0 if abs(number) < TOLERANCE else
                round(number, 10) if isinstance(number, float) else number)


def runs(sequences):
    """Nested choices at the places where some instance's number changes."""
    longest = max(map(len, sequences))
    breaks = sorted({n for s in sequences for n in range(1, len(s))
                     if one_of(s[n - 1:n + 1]) is None}) + [longest]
    rows, start = [], 0
    for end in breaks:
        rows.append([one_of(s[start:end]) if s[start:end] else ANY for s in sequences])
        start = end
    if any(None in row for row in rows):
        breaks = list(range(1, longest + 1))
        rows = [[s[n] if n < len(s) else ANY for s in sequences] for n in range(longest)]

    def write(*texts):
        return "".join(f"{text} if index < {end} else "
                       for text, end in zip(texts[:-1], breaks)) + texts[-1]

    return rows, write
