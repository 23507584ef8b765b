"""Names of functions that stay the same from build to build, and the symbols of an object file."""

import re
import struct
from pathlib import Path

# A name is cut here: the type parameters of drop glue run to ten thousand characters.
LONGEST = 100
# What the compiler appends to a symbol that it copies or makes local.
COPY = re.compile(r"(\.llvm)?\.\d+$")
# https://doc.rust-lang.org/rustc/symbol-mangling/v0.html: a crate is named by a hash of its version and its options.
V0_CRATE = re.compile(r"Cs[0-9A-Za-z]+_")
ESCAPES = {
    "$LT$": "<", "$GT$": ">", "$RF$": "&", "$BP$": "*", "$LP$": "(", "$RP$": ")", "$C$": ",", "$SP$": "@",
    "$u20$": " ", "$u27$": "'", "$u2b$": "+", "$u3b$": ";", "$u5b$": "[", "$u5d$": "]", "$u7b$": "{", "$u7d$": "}",
    "$u7e$": "~", "..": "::",
}
ESCAPE = re.compile("|".join(re.escape(escape) for escape in ESCAPES))


def name(symbol: str) -> str:
    """The function that a symbol is for, without the hash of the build. Functions of C are their own names."""
    symbol = COPY.sub("", symbol)
    if symbol.startswith("_R"):
        return V0_CRATE.sub("C", symbol)[:LONGEST]
    if not symbol.startswith("_ZN"):
        return symbol
    parts, rest = [], symbol[3:]
    while length := re.match(r"\d+", rest):
        begin, end = length.end(), length.end() + int(length[0])
        parts.append(rest[begin:end])
        rest = rest[end:]
    # The last part is the hash.
    path = "::".join(part.removeprefix("_") if part.startswith("_$") else part for part in parts[:-1])
    return ESCAPE.sub(lambda found: ESCAPES[found[0]], path)[:LONGEST]


def symbols(object_file: Path) -> list[str]:
    """The functions that a 64-bit little-endian ELF object defines, in its order."""
    content = object_file.read_bytes()
    if content[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{object_file}: not a 64-bit little-endian ELF file")
    offset, entry, count = struct.unpack_from("<40xQ10xHH", content)
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, offset + entry * number) for number in range(number_of(content, offset, count))]
    found = []
    for section in sections:
        kind, begin, size, linked = section[1], section[4], section[5], section[6]
        if kind != 2:  # SHT_SYMTAB
            continue
        names = sections[linked][4]
        for at in range(begin, begin + size, 24):
            text, info, _other, index = struct.unpack_from("<IBBH", content, at)
            if info & 15 == 2 and index != 0:  # STT_FUNC, defined here
                found.append(content[names + text : content.index(b"\0", names + text)].decode())
    return found


def number_of(content: bytes, offset: int, count: int) -> int:
    """Number of sections. Where it does not fit into the header, the first section holds it."""
    return count or struct.unpack_from("<32xQ", content, offset)[0]
