"""Names and messages of others, as they can be shown on a terminal and written into a file.

A name may hold any character. Printed as it is, an escape sequence in it moves the cursor or hides
text, and half of a surrogate pair cannot be encoded at all. Escapes stand in their place, those of
the program `stowage` (estimator/base/printable.hpp): "\\x1b", "\\u202e", and "\\xff" for a byte of a
file name that is not UTF-8. All else stays.
"""

from __future__ import annotations

import re
from typing import Any

# C0 and C1 controls, line separators, what embeds or overrides the direction of writing, surrogates.
ESCAPED = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
RAW_BYTES = range(0xDC80, 0xDD00)  # how Python holds the bytes of a file name that is not UTF-8
LONGEST_BYTES = 4000  # of a name; a step file's texts end at 4096


def escape(character: str) -> str:
    code = ord(character)
    if character in SHORT:
        return SHORT[character]
    if code in RAW_BYTES:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


def printable_line(text: str) -> str:
    """The text on one line."""
    return ESCAPED.sub(lambda found: escape(found.group()), text)


def printable_text(text: str) -> str:
    """As printable_line; newlines and tabs stay."""
    return ESCAPED.sub(lambda found: found.group() if found.group() in "\n\t"
                       else escape(found.group()), text)


def printable_name(text: str, longest: int = LONGEST_BYTES) -> str:
    """As printable_line, of at most `longest` bytes in UTF-8."""
    line = printable_line(text)
    if len(line) * 4 <= longest:
        return line
    return line.encode()[:longest].decode(errors="ignore")


def printable_tree(value: Any, shortened: bool = True) -> Any:
    """A step file's lists and dicts with all of their texts as printable_name has them. Texts of calls'
    attributes say what the call does, and are not shortened."""
    if isinstance(value, str):
        return printable_name(value) if shortened else printable_line(value)
    if isinstance(value, list):
        return [printable_tree(item, shortened) for item in value]
    if isinstance(value, dict):
        return {printable_name(key): printable_tree(item, shortened and key != "attributes")
                for key, item in value.items()}
    return value
