#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Generates C and Swift from the project's own .proto files with protoc-gen-longlink, and writes them to
# their places in the repository. The first run builds the generator.
#
#   Scripts/protocols.sh          writes the files
#   Scripts/protocols.sh --check  writes nothing; fails if a committed file is not up to date
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

build=${GENERATOR_BUILD:---traits SwiftProtobuf --scratch-path .build-generator}
${SWIFT-swift} build $build --product protoc-gen-longlink >&2
plugin=$(${SWIFT-swift} build $build --show-bin-path)/protoc-gen-longlink

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/out
mkdir "$out"

# generate OPTIONS PROTOC-ARGUMENT...
generate() {
  options=$1
  shift
  protoc --plugin=protoc-gen-longlink="$plugin" --longlink_out="$out" --longlink_opt="$options" "$@"
}

# The C that tests use directly, as protoc-c generates it.
generate C=Tests/CLongLinkControl --proto_path=Protocols control.proto
generate C=Tests/CLongLinkProbe --proto_path=Tests/CLongLinkProbe probe.proto
generate Messages=Tests/LongLinkDemoMessages,C=Tests/CLongLinkDemo,Visibility=package \
  --proto_path=Protocols demo.proto

generate C=Benchmarks/Sources/CQuote --proto_path=Benchmarks/Protocols quote.proto

# The package that tests the generator.
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

# The example.
generate "Messages=Examples/Chat/Sources/ChatMessages,C=Examples/Chat/Sources/CChatMessages,\
Server=Examples/Chat/Sources/ChatServer,Simulated=Examples/Chat/Tests/ChatTests" \
  --proto_path=Examples/Chat/Protos --proto_path=Protocols chat.proto

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
others=
if [ "$check" = yes ] && ! grep -q "^#elif $number <" Tests/CLongLinkDemo/include/demo.pb-c.h; then
  others='*.pb-c.[ch]'
  Scripts/skip.sh 'The comparison of generated C' \
    "the committed files come from another version of protoc-c than this one ($number)"
fi

status=0
for file in $(cd "$out" && find . -type f ! -name "$others" | sort); do
  if [ "$check" = no ]; then
    mkdir -p "$(dirname "$file")"
    cmp -s "$out/$file" "$file" || cp "$out/$file" "$file"
  elif ! cmp -s "$out/$file" "$file"; then
    echo "$file is not up to date: run 'make protocols'" >&2
    status=1
  fi
done
exit "$status"
