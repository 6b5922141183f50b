# SPDX-License-Identifier: Apache-2.0
"""Copies a DocC catalog, with the links between its pages in DocC's form: pages.py CATALOG COPY.

The pages link to each other's files, as in [Streams](Streaming.md), so that they can be read on a Git host.
DocC follows doc: links alone. A link to a file outside of the catalog becomes emphasized text. A link to a file
that does not exist is an error, and so is a doc: link, which a Git host does not follow.
"""
import os
import re
import shutil
import sys

catalog, copy = sys.argv[1:]
shutil.copytree(catalog, copy)
errors = []


def rewritten(match, page):
    item, text, target = match.groups()
    path, _, section = target.partition("#")
    if not os.path.exists(os.path.join(catalog, path)):
        errors.append(f"{page}: {target} does not exist")
    if "/" in path:
        return f"{item}*{text}*"
    link = "doc:" + path.removesuffix(".md")
    if section:
        link += "#" + section[0].upper() + section[1:]
    # In a list of topics, DocC writes the titles itself.
    return f"{item}<{link}>" if item else f"[{text}]({link})"


for name in sorted(os.listdir(copy)):
    if not name.endswith(".md"):
        continue
    page = os.path.join(catalog, name)
    with open(page) as file:
        parts = re.split(r"(^```.*?^```$)", file.read(), flags=re.MULTILINE | re.DOTALL)
    # Every second part is code, perhaps with a word for checks after its language.
    for index in range(1, len(parts), 2):
        parts[index] = re.sub(r"^```(\w+) .*", r"```\1", parts[index])
    for index in range(0, len(parts), 2):
        if "<doc:" in parts[index] or "](doc:" in parts[index]:
            errors.append(f"{page}: link to the file instead of doc:, as in [Streams](Streaming.md)")
        parts[index] = re.sub(
            r"(^- |)\[([^\]]+)\]\(([\w./-]+(?:#[\w-]+)?)\)",
            lambda match: rewritten(match, page), parts[index], flags=re.MULTILINE)
    with open(os.path.join(copy, name), "w") as file:
        file.write("".join(parts))
if errors:
    sys.exit("\n".join(errors))
