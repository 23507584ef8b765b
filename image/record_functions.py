#!/usr/bin/env python3
"""Writes image/functions.txt anew: the functions that run while the program works for the scenarios of the bench.

Needs Valgrind, which is slow: some twenty minutes. The list ages well, so that this is worth it after larger changes.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from build import REPOSITORY, compile_for, host, source_date
from functions import name
from link import LIST

# Together they start, list, create, change and publish.
SCENARIOS = ["groups", "create", "nodes"]
# The bench kills what it started, which must not be Valgrind: it writes what it saw when the program ends.
WRAPPER = """#!/bin/sh
valgrind --quiet --tool=callgrind --demangle=no --callgrind-out-file={folder}/%p.out {binary} "$@" &
echo $! >> {folder}/started
wait
"""
HEAD = "# The functions that run, written by image/record_functions.py. See docs/adr/0024-code-that-runs-lies-together.md.\n"


def main() -> None:
    """Records and writes."""
    binary = compile_for(host(), source_date(), strip=False)
    with tempfile.TemporaryDirectory() as folder:
        wrapper = Path(folder) / "program"
        wrapper.write_text(WRAPPER.format(folder=folder, binary=binary))
        wrapper.chmod(0o755)
        for scenario in SCENARIOS:
            bench(scenario, wrapper)
            finish(Path(folder) / "started")
        names = {name(symbol) for file in Path(folder).glob("*.out") for symbol in executed(file)}
    if not names:
        sys.exit("Valgrind saw nothing run")
    LIST.write_text(HEAD + "".join(f"{one}\n" for one in sorted(names)))
    print(f"{LIST}: {len(names)} functions")


def bench(scenario: str, wrapper: Path) -> None:
    """Runs one scenario."""
    command = ["cargo", "bench", "--locked", "--profile", "release", "--package", "openstack-ccm", "--bench", "load_balancers", "--", scenario]
    subprocess.run(command, cwd=REPOSITORY, check=True, env={**os.environ, "BENCH_PROGRAM": str(wrapper)})


def finish(started: Path) -> None:
    """Ends what was started in an orderly way."""
    for process in {int(line) for line in started.read_text().split()}:
        try:
            os.kill(process, signal.SIGTERM)
            while True:
                os.kill(process, 0)
                time.sleep(0.5)
        except ProcessLookupError:
            pass


def executed(file: Path) -> set[str]:
    """The symbols in a file of callgrind (https://valgrind.org/docs/manual/cl-format.html)."""
    found = re.findall(r"^c?fn=\(\d+\) (.+)$", file.read_text(errors="replace"), re.MULTILINE)
    # Recursion is numbered with an apostrophe; what has no symbol has an address.
    return {symbol.split("'")[0] for symbol in found if re.match(r"[A-Za-z_]", symbol)}


if __name__ == "__main__":
    main()
