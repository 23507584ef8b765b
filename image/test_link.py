"""The linker puts the functions that run first, whatever a build calls them."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from functions import LONGEST, name, symbols
from link import LIST

LINK = Path(__file__).resolve().parent / "link.py"
RUST = "_ZN5tokio7runtime4task3raw4poll17h0123456789abcdefE"


class Names(unittest.TestCase):
    """A function keeps its name from build to build."""

    def test_the_hash_of_a_build_is_left_out(self) -> None:
        self.assertEqual(name(RUST), "tokio::runtime::task::raw::poll")
        self.assertEqual(name(RUST + ".llvm.4711"), name(RUST.replace("0123", "9999")))

    def test_escapes_are_written_out(self) -> None:
        symbol = "_ZN54_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..clone..Clone$GT$5clone17h0123456789abcdefE"
        symbol = symbol.replace("54_", f"{len(symbol.split('54', 1)[1].split('5clone')[0])}_")
        self.assertEqual(name(symbol), "<alloc::vec::Vec<T> as core::clone::Clone>::clone")

    def test_crates_of_the_new_mangling_have_no_hash(self) -> None:
        self.assertEqual(name("_RNvNtCsjrHSEGnQ3l9_3std3sys5alloc"), name("_RNvNtCsabc_3std3sys5alloc.12"))

    def test_long_names_are_cut(self) -> None:
        glue = "drop_in_place$LT$" + "a" * 1000
        self.assertEqual(len(name(f"_ZN4core3ptr{len(glue)}{glue}17h0123456789abcdefE")), LONGEST)

    def test_functions_of_c_are_called_what_they_are_called(self) -> None:
        self.assertEqual(name("memcpy"), "memcpy")

    def test_the_list_is_sorted_and_holds_each_function_once(self) -> None:
        lines = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
        self.assertEqual(lines, sorted(set(lines)))
        self.assertGreater(len(lines), 1000)


@unittest.skipUnless(shutil.which("cc"), "no C compiler")
class Order(unittest.TestCase):
    """Objects are read, and the order is handed to the linker with all that rustc asked for."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.object = self.folder / "one.rcgu.o"
        source = f"void cold(void) {{}}\nvoid {RUST}(void) {{ cold(); }}\nextern void elsewhere(void); int data;\n"
        command = ["cc", "-x", "c", "-c", "-ffunction-sections", "-o", self.object, "-"]
        subprocess.run(command, input=source.encode(), check=True)

    def test_the_functions_of_an_object_are_read(self) -> None:
        self.assertEqual(sorted(symbols(self.object)), sorted(["cold", RUST]))

    def test_what_is_no_object_is_said(self) -> None:
        self.object.write_text("text")
        with self.assertRaisesRegex(ValueError, "not a 64-bit little-endian ELF file"):
            symbols(self.object)

    def test_functions_that_run_are_ordered_and_the_rest_is_left_to_the_linker(self) -> None:
        linker = self.folder / "rust-lld"
        linker.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        linker.chmod(0o755)
        output = self.folder / "program"
        command = [sys.executable, LINK, "-flavor", "gnu", self.object, "-o", output]
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"}
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        order = self.folder / "program.order"
        given = done.stdout.split()
        self.assertEqual(given[:5], ["-flavor", "gnu", str(self.object), "-o", str(output)])
        self.assertIn(f"--symbol-ordering-file={order}", given)
        ordered = order.read_text().split()
        self.assertEqual(ordered[0], RUST)
        self.assertIn("malloc", ordered)
        self.assertNotIn("cold", ordered)


if __name__ == "__main__":
    unittest.main()
