#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes TREE a copy of the package and of the command's package. Unchanged files keep their times, so that
# little is compiled again. Files that were changed in the copy are restored.
#
#   Scripts/copy.sh TREE
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$1
files=$(mktemp)
trap 'rm -f "$files"' EXIT

mkdir -p "$tree"
find Package.* Command Plugins Protocols Scripts Sources Tests -path Tests/Generator -prune -o \
  -type f -print | sort >"$files"
while read -r file; do
  cmp -s "$file" "$tree/$file" && continue
  mkdir -p "$tree/$(dirname "$file")"
  cp "$file" "$tree/$file"
done <"$files"
(cd "$tree" && find . -type f | sed 's|^[.]/||' | sort) | comm -23 - "$files" |
  while read -r file; do rm "$tree/$file"; done
