#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Generates code, with the command that users run, from .proto files in which every name is a reserved word
# or a known name in Swift or C, and compiles it. A second run of the command, and one after that build, must
# not compile the generator again.
set -eu
cd "$(dirname "$0")/.."

package='--package-path Tests/Generator/Words --scratch-path .build-generator-tests'
words=Tests/Generator/Words
rm -rf $words/Protos $words/Sources
for target in CWords/include Words CEnums/include Enums Stubs; do
  mkdir -p $words/Sources/$target
done
Scripts/python.sh $words/protos.py $words/Protos

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# generate MODULE OPTION...
generate() {
  module=$1
  shift
  folder=Protos/$(echo "$module" | tr '[:upper:]' '[:lower:]')
  # The file names contain no spaces.
  ${SWIFT-swift} package $package --allow-writing-to-package-directory generate-longlink \
    --messages "Sources/$module" --proto-path "$folder" "$@" \
    $(cd $words && find "$folder" -name '*.proto' | sort) >"$log" 2>&1 || { cat "$log"; exit 1; }
}

# generated_at_once: fails if the last run compiled anything.
generated_at_once() {
  ! grep -q Compiling "$log" && return
  cat "$log"
  echo "$0: the command compiled its generator again" >&2
  exit 1
}

generate Words --no-client --no-server
generate Enums
generated_at_once
generate Stubs --runtime SwiftProtobuf --simulated Sources/Stubs
generated_at_once
${SWIFT-swift} build $package
generate Words --no-client --no-server
generated_at_once
