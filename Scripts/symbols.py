# SPDX-License-Identifier: Apache-2.0
"""Prints the symbol graph of a module with the symbols of others: symbols.py MODULE OTHER..."""
import json
import sys

graphs = []
for name in sys.argv[1:]:
    with open(f"{name}.symbols.json") as file:
        graphs.append(json.load(file))
whole = graphs[0]
known = {symbol["identifier"]["precise"] for symbol in whole["symbols"]}
for graph in graphs[1:]:
    for symbol in graph["symbols"]:
        if symbol["identifier"]["precise"] not in known:
            known.add(symbol["identifier"]["precise"])
            whole["symbols"].append(symbol)
    whole["relationships"] += graph["relationships"]
json.dump(whole, sys.stdout)
