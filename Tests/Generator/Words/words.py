#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the words that Swift and C have a meaning for, as the tools of this machine know them.

words.py writes the lists beside this file, from which protos.py makes .proto files:

  keywords.txt  every keyword of swift-syntax, which the toolchain brings along
  types.txt     every public type of the standard library and of its concurrency
  macros.txt    every macro of the C standard library's headers that a field or a message can be
                called by, and what the compiler defines for this platform

They are committed, so that a check needs neither 150 MB of symbols nor the same system. The words
of C and those that generated code uses are in protos.py.
"""

import json
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent
TYPES = {f"swift.{kind}" for kind in ("class", "enum", "protocol", "struct", "typealias")}
HEADERS = "assert complex errno iso646 limits stdarg stdbool stddef stdint stdio stdlib".split()


def symbols(module, *options):
    """The public symbols of a module of the toolchain."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["swift-symbolgraph-extract", "-module-name", module, "-output-dir", folder, *options],
            check=True, stderr=subprocess.DEVNULL)
        return [
            symbol for file in pathlib.Path(folder).iterdir()
            for symbol in json.loads(file.read_text())["symbols"]]


def target():
    info = json.loads(subprocess.check_output(["swift", "-print-target-info"]))
    return info["target"]["triple"], pathlib.Path(info["paths"]["runtimeResourcePath"])


def macros():
    text = "".join(f"#include <{header}.h>\n" for header in HEADERS)
    lines = subprocess.check_output(["clang", "-std=gnu17", "-dM", "-E", "-x", "c", "-"],
                                    input=text, text=True).splitlines()
    return {line.split()[1].split("(")[0] for line in lines}


def write(name, words):
    (HERE / name).write_text("".join(f"{word}\n" for word in sorted(words)))


def main():
    triple, resources = target()
    options = ["-target", triple]
    syntax = symbols("SwiftSyntax", *options, "-I", str(resources / "host"))
    write("keywords.txt", {
        symbol["pathComponents"][1] for symbol in syntax
        if symbol["kind"]["identifier"] == "swift.enum.case"
        and symbol["pathComponents"][0] == "Keyword"})
    library = [
        symbol for module in ("Swift", "_Concurrency", "_StringProcessing")
        for symbol in symbols(module, *options)]
    write("types.txt", {
        symbol["pathComponents"][0] for symbol in library
        if symbol["kind"]["identifier"] in TYPES and len(symbol["pathComponents"]) == 1})
    # What begins with two underscores is called so on purpose, to be like nothing else.
    write("macros.txt", {name for name in macros() if not name.startswith("_")})


main()
