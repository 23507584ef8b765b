#!/usr/bin/env python3
"""The linker of the image's binary: rust-lld, told to put the functions that run next to each other.

The kernel maps a file in windows of 64 KiB, so that a function that runs brings its neighbours into memory. Three fifths of
the code hardly ever run. image/functions.txt names the others; a name that is not in the binary any more does no harm,
and a function that is not named only lies elsewhere. See docs/adr/0024-code-that-runs-lies-together.md.
"""

import os
import sys
from pathlib import Path

from functions import name, symbols

LIST = Path(__file__).resolve().parent / "functions.txt"


def main() -> None:
    """Writes the order beside the result, and links."""
    arguments = sys.argv[1:]
    output = Path(arguments[arguments.index("-o") + 1])
    running = {line for line in LIST.read_text().splitlines() if not line.startswith("#")}
    objects = [Path(argument) for argument in arguments if argument.endswith(".rcgu.o")]
    found = [symbol for file in objects for symbol in symbols(file) if name(symbol) in running]
    # Functions in C come from archives, under their own names.
    found += sorted(line for line in running if line.isidentifier() and not line.startswith("_R"))
    order = output.with_name(output.name + ".order")
    order.write_text("\n".join(found) + "\n")
    options = [f"--symbol-ordering-file={order}", "--no-warn-symbol-ordering"]
    os.execvp("rust-lld", ["rust-lld", *arguments, *options])


if __name__ == "__main__":
    main()
