#!/usr/bin/env python3
"""A C compiler for macOS: `zig cc` of the PyPI package ziglang, for the build scripts of crates."""

import os
import sys

words = iter(sys.argv[1:])
kept = []
for word in words:
    # Zig knows the target, its headers and its oldest release; it spells them in its own way.
    if word in ("-arch", "-isysroot", "-target"):
        next(words, None)
    elif not word.startswith(("--target=", "-mmacosx-version-min=")):
        kept.append(word)
os.execv(sys.executable, [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-macos", *kept])
