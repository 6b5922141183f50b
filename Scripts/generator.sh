#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the generator with the packages in Tests/Generator: its output, its errors, that its two runtimes
# and Python's protobuf package agree, and that its output compiles even if names are reserved words.
set -eu
cd "$(dirname "$0")/.."

package='--package-path Tests/Generator --scratch-path .build-generator-tests'
${SWIFT-swift} build $package --product protoc-gen-longlink
PROTOC_GEN_LONGLINK=$(cd "$(${SWIFT-swift} build $package --show-bin-path)" && pwd)/protoc-gen-longlink
export PROTOC_GEN_LONGLINK
Scripts/python.sh Tests/Generator/Tests/AgreementTests/Vectors/make.py --check
export LONGLINK_WARNINGS_AS_ERRORS=1
${SWIFT-swift} build $package --build-tests
${SWIFT-swift} test $package --skip-build --disable-xctest
Scripts/words.sh
