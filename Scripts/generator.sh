#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the generator with the packages in Tests/Generator: its output, its errors, that its two runtimes
# and Python's protobuf package agree, and that its output compiles even if names are reserved words.
set -eu
cd "$(dirname "$0")/.."

build=${GENERATOR_BUILD:---traits SwiftProtobuf --scratch-path .build-generator}
${SWIFT-swift} build $build --product protoc-gen-longlink
PROTOC_GEN_LONGLINK=$(cd "$(${SWIFT-swift} build $build --show-bin-path)" && pwd)/protoc-gen-longlink
export PROTOC_GEN_LONGLINK
Scripts/python.sh Tests/Generator/Tests/AgreementTests/Vectors/make.py --check
package="--package-path Tests/Generator --scratch-path ${GENERATOR_TESTS-.build-generator-tests}"
export LONGLINK_WARNINGS_AS_ERRORS=1
${SWIFT-swift} build $package --build-tests
${SWIFT-swift} test $package --skip-build --disable-xctest
Scripts/words.sh
