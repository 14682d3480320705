"""JSON that is compact and still diffable: what fits a line stays on it, the rest opens up."""

import json
import pathlib

LINE = 140


def render(value, indent=0):
    """The JSON text of `value`; lists of plain numbers are never broken over lines."""
    line = json.dumps(value, ensure_ascii=False)
    plain = isinstance(value, list) and all(isinstance(x, (int, float)) for x in value)
    if plain or not isinstance(value, (list, dict)) or len(line) + indent <= LINE:
        return line
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        rows = [f"{pad}{json.dumps(str(k))}: {render(v, indent + 1)}" for k, v in value.items()]
    else:
        rows = [pad + render(v, indent + 1) for v in value]
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return opening + "\n" + ",\n".join(rows) + "\n" + " " * indent + closing


def write(path, value):
    """Write `value` to `path`, making its folder."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(value) + "\n", encoding="utf-8")
