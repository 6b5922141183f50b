#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Generates C and Swift from the project's own .proto files with protoc-gen-longlink, and writes them to
# their places in the repository. The first run builds the generator.
#
#   Scripts/protocols.sh          writes the files
#   Scripts/protocols.sh --check  writes only files that are not committed; fails if a committed file is not
#                                 up to date
set -eu
cd "$(dirname "$0")/.."

case "${1-}" in
'') check=no ;;
--check) check=yes ;;
*)
  echo "usage: $0 [--check]" >&2
  exit 64
  ;;
esac
for tool in protoc protoc-c; do
  command -v $tool >/dev/null && continue
  echo "$0: $tool is missing (Debian: protobuf-compiler protobuf-c-compiler," \
    "Homebrew: protobuf protobuf-c)" >&2
  exit 69
done

build='--package-path Tests/Generator --scratch-path .build-generator-tests'
for product in protoc-gen-longlink protoc-gen-swift; do
  ${SWIFT-swift} build $build --product $product >&2
done
bin=$(${SWIFT-swift} build $build --show-bin-path)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/out
mkdir "$out"

# generate OPTIONS PROTOC-ARGUMENT...
generate() {
  options=$1
  shift
  protoc --plugin=protoc-gen-longlink="$bin/protoc-gen-longlink" --longlink_out="$out" --longlink_opt="$options" "$@"
}

# The C that tests use directly, as protoc-c generates it.
generate C=Tests/CLongLinkControl --proto_path=Protocols control.proto
generate C=Tests/CLongLinkProbe --proto_path=Tests/CLongLinkProbe probe.proto
generate Messages=Tests/LongLinkDemoMessages,C=Tests/CLongLinkDemo,Visibility=package \
  --proto_path=Protocols demo.proto

generate C=Benchmarks/Sources/CQuote --proto_path=Benchmarks/Protocols quote.proto

# The package that tests the generator compiles these. Copies of two of them are committed, so that a change of
# what the generator writes is seen.
generate Messages=Tests/Generator/Sources/Corpus,C=Tests/Generator/Sources/CCorpus \
  --proto_path=Tests/Generator/Protos corpus.proto
generate "Messages=Tests/Generator/Sources/Parcels,C=Tests/Generator/Sources/CParcels,\
Client=Tests/Generator/Sources/Parcels,Server=Tests/Generator/Sources/Parcels,\
Simulated=Tests/Generator/Tests/ParcelTests" \
  --proto_path=Tests/Generator/Protos --proto_path=Protocols parcel.proto places.proto
generate "Runtime=SwiftProtobuf,Messages=Tests/Generator/Sources/ParcelsOfSwift,\
Client=Tests/Generator/Sources/ParcelsOfSwift,Server=Tests/Generator/Sources/ParcelsOfSwift,\
Simulated=Tests/Generator/Tests/SwiftProtobufTests" \
  --proto_path=Tests/Generator/Protos --proto_path=Protocols parcel.proto places.proto

mkdir "$out/Tests/Generator/Golden"
for part in client server; do
  cp "$out/Tests/Generator/Sources/Parcels/parcel.$part.swift" "$out/Tests/Generator/Golden"
done

# messages_of_swift TARGET FILE...: the messages of SwiftProtobuf.
messages_of_swift() {
  sources=Tests/Generator/Sources/$1
  shift
  mkdir -p "$out/$sources"
  protoc --plugin=protoc-gen-swift="$bin/protoc-gen-swift" --swift_out="$out/$sources" \
    --swift_opt=Visibility=Public --swift_opt=UseAccessLevelOnImports=true \
    --proto_path=Tests/Generator/Protos --proto_path=Protocols "$@"
}
messages_of_swift CorpusOfSwift corpus.proto
messages_of_swift ParcelsOfSwift parcel.proto places.proto

# The examples.
generate "Messages=Examples/Chat/Sources/ChatMessages,C=Examples/Chat/Sources/CChatMessages,\
Server=Examples/Chat/Sources/ChatServer,Simulated=Examples/Chat/Tests/ChatTests" \
  --proto_path=Examples/Chat/Protos --proto_path=Protocols chat.proto
hub=Examples/Hub/Sources
generate "Messages=$hub/Telemetry,C=$hub/CTelemetry,Client=$hub/Telemetry,Server=$hub/Telemetry" \
  --proto_path=Examples/Hub/Protos --proto_path=Protocols telemetry.proto
payments=Examples/Payments/Sources
generate "Messages=$payments/Payments,C=$payments/CPayments,Client=$payments/Payments,Server=$payments/Payments" \
  --proto_path=Examples/Payments/Protos --proto_path=Protocols payments.proto

# The messages that come with Protocol Buffers, without their comments.
known=
for name in any duration empty field_mask struct timestamp wrappers; do
  known="$known google/protobuf/$name.proto"
done
# The list of files is split into words on purpose.
protoc --descriptor_set_out="$work/known" $known
generate \
  Messages=Sources/LongLinkProtobufC/WellKnown:LongLinkProtobufC,C=Sources/CLongLinkWellKnown \
  --descriptor_set_in="$work/known" $known

# Other versions of protoc-c generate different C, which cannot be compared with the committed files. The
# other files are the same for all versions.
number=$(protoc-c --version | awk '$1 == "protobuf-c" {
  split($2, part, "."); print part[1] * 1000000 + part[2] * 1000 + part[3] }')
comparable=yes
if [ "$check" = yes ] && ! grep -q "^#elif $number <" Tests/CLongLinkDemo/include/demo.pb-c.h; then
  comparable=differs
  Scripts/skip.sh 'The comparison of generated C' \
    "the committed files come from another version of protoc-c than this one ($number)"
fi

status=0
for file in $(cd "$out" && find . -type f | sort); do
  case $file in
  ./Tests/Generator/Golden/*) committed=yes ;;
  ./Tests/Generator/*) committed=no ;;
  *.pb-c.[ch]) committed=$comparable ;;
  *) committed=yes ;;
  esac
  # Of another version of protoc-c.
  [ "$committed" != differs ] || continue
  if [ "$check$committed" != yesyes ]; then
    mkdir -p "$(dirname "$file")"
    cmp -s "$out/$file" "$file" || cp "$out/$file" "$file"
  elif ! cmp -s "$out/$file" "$file"; then
    echo "$file is not up to date: run 'make protocols'" >&2
    status=1
  fi
done
exit "$status"
