"""Values as a description writes them."""


def text_of(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, float):
        text = repr(round(value, 10)) if abs(value) > 1e-4 else repr(value)
        return text.removesuffix(".0").replace("e-0", "e-").replace("inf", ".inf")
    return str(value)
