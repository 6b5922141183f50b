#!/bin/sh
# Tests the generator with the package in GeneratorChecks: what it generates, what it refuses, and that
# its two runtimes and Python's protobuf package agree. Scripts/protocols.sh has built the plug-in.
set -eu
cd "$(dirname "$0")/.."

build="--traits SwiftProtobuf --scratch-path ${GENERATOR_BUILD-.build-generator}"
PROTOC_GEN_LONGLINK=$(cd "$(${SWIFT-swift} build $build --show-bin-path)" && pwd)/protoc-gen-longlink
export PROTOC_GEN_LONGLINK
if command -v python3 >/dev/null; then
  python3 GeneratorChecks/Tests/AgreementTests/Vectors/make.py --check
else
  echo 'The vectors are not compared with their generator: python3 is missing.'
fi
package="--package-path GeneratorChecks --scratch-path ${GENERATOR_TESTS-GeneratorChecks/.build}"
export LONGLINK_WARNINGS_AS_ERRORS=1
${SWIFT-swift} build $package --build-tests
${SWIFT-swift} test $package --skip-build --disable-xctest
