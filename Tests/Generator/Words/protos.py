#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes .proto files in which everything is called by a word that Swift or C has a meaning for.

protos.py FOLDER writes them there, in a folder for each module. The words of keywords.txt, types.txt
and macros.txt (words.py tells where they come from) and of the lists below are names of messages,
nested types, fields, oneofs and their cases, enumerations and their values, services, methods, files
and packages. A word is not in every combination of these, so that all of it compiles in minutes.
"""

import itertools
import pathlib
import sys

HERE = pathlib.Path(__file__).parent

# Keywords of C (to C23) and of C++, in which generated headers are read as well.
C = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
char8_t class co_await co_return co_yield compl complex concept const const_cast consteval constexpr
constinit continue decltype default delete do double dynamic_cast else enum explicit export extern
false final float for friend goto if imaginary import inline int long module mutable namespace new
noexcept not not_eq nullptr operator or or_eq override private protected public register
reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct
switch template this thread_local throw true try typedef typeid typename typeof typeof_unqual union
unsigned using virtual void volatile wchar_t while xor xor_eq _Alignas _Alignof _Atomic _BitInt _Bool
_Complex _Decimal128 _Decimal32 _Decimal64 _Generic _Imaginary _Noreturn _Static_assert _Thread_local
FILE DIR time_t size_t ssize_t ptrdiff_t int8_t int32_t uint64_t intptr_t wint_t va_list jmp_buf
__linux__ __x86_64__ __unix__ __LINE__ __FILE__ __COUNTER__ __func__ __attribute__ i386 major minor
makedev environ main exit free malloc printf abort near far interface
""".split()

# Words behind a # or an @, and what .proto files themselves are made of.
OTHERS = """
elseif endif selector keyPath sourceLocation error warning fileID filePath function column dsohandle
main discardableResult escaping inlinable usableFromInline frozen testable dynamicMemberLookup
dynamicCallable propertyWrapper resultBuilder globalActor objcMembers dynamicType
syntax option reserved extensions extend oneof map repeated optional required group rpc returns
stream service int32 int64 uint32 uint64 sint32 sfixed64 fixed32 string bytes to max
""".split()

# Members that every value has, that the generated code declares or that it calls.
MEMBERS = """
hash hashValue description debugDescription rawValue RawValue allCases none some wrapped unrecognized
UNRECOGNIZED layout encode decode encoded decoding encodedByteCount encodedBytes decodingMemoryLimit
isMeasuredByEncoding withCMessage pushType unknownFields isInitialized serializedBytes
protoMessageName init self Self Type Protocol value key message arena reader field entry entries set
other new_value newValue oldValue error result request response options client server service context
sender submit endpoint over name type idempotency
placement route register start stop on send call on_reply client_ request_ loop address completion
executor writer items work itemTimeout count delay action actions make isRead1 read fill initialize next skip each bytes strings
messages scalars base n_items items has_x x n_x x_case storage first append sorted isEmpty isRead
unsafe Entry UnknownStorage Extensions OneOf Foundation Glibc Data Date URL UUID Logger Client Server
Service Options Message Response
""".split()

# What the generated code mentions: types of Swift's library, and modules and types of LongLink.
MENTIONED = """
Bool Double Duration Float Hashable Int Int32 Int64 RawRepresentable Result Sendable String UInt32
UInt64 UInt8 Void Array Dictionary Optional Error Never
""".split()
LONGLINK = """
Swift LongLink LongLinkCore LongLinkServer LongLinkTesting LongLinkProtobufC LongLinkProtobuf
SwiftProtobuf CProtobufC Words CWords Enums CEnums Stubs BodyDecodable BodyEncodable BodyError
CallbackExecutor EventLoop HandlerPlacement InboundRequest LongLinkClient LongLinkError MessageType
ProtobufBody ProtobufCArena ProtobufCBody ProtobufCLayout ProtobufCMessage ProtobufCReader
Endpoint ProtobufEmpty ProtobufTimestamp PushMessage Rejection RequestOptions RequestSender RequestTask
RPCMethod Streamed ServerAction SimulatedServer
SocketAddress StreamOptions Items ItemStream ItemWriter _ __ _1 _a __b a__c a_1 a1 A_B ab_ HTTP2 userID user_url
""".split()


def lines(name):
    return (HERE / name).read_text().split()


def unique(words):
    return list(dict.fromkeys(words))


MACROS = lines("macros.txt")
LIBRARY = lines("types.txt")
KEYWORDS = unique(lines("keywords.txt") + C + OTHERS)
SWIFT = unique(lines("keywords.txt") + OTHERS + MEMBERS)
VALUES = unique(KEYWORDS + MEMBERS)
TYPES = unique(SWIFT + LIBRARY + LONGLINK)
WORDS = unique(VALUES + TYPES + MACROS)


def form(word):
    """What protoc ignores where it looks for names that are the same."""
    return word.replace("_", "").lower()


def batches(words, form=form, size=100):
    """The words in as few lists as protoc and their length allow."""
    found = []
    for word in words:
        for batch in found:
            if len(batch) < size and form(word) not in batch:
                batch[form(word)] = word
                break
        else:
            found.append({form(word): word})
    return [list(batch.values()) for batch in found]


class File:
    """One .proto file of a package; each service and push has a message type of its own."""

    types = 0

    def __init__(self, folder, name, package):
        self.path = folder / f"{name}.proto"
        self.package = package
        self.text = 'syntax = "proto3";\n'
        if package:
            self.text += f"package {package};\n"

    def add(self, text):
        self.text += text + "\n"

    def block(self, head, members):
        self.add(head + " {\n" + "".join(f"  {member}\n" for member in members) + "}")

    def full(self, name):
        return f".{self.package}.{name}" if self.package else f".{name}"

    def write(self):
        if "(longlink." in self.text:
            self.text += 'import "longlink/options.proto";\n'
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(self.text)

    @classmethod
    def type(cls):
        cls.types += 1
        return cls.types


def numbered(words):
    return [(word, number) for number, word in enumerate(words, 1)]


def messages(folder):
    """Messages, each with a list of its own kind that is called like itself.

    They have no package, so that their names in C are bare, too. A name in capitals alone gets
    another one in C, whatever it is, so that those of macros need no messages.
    """
    # Words that only their case tells apart are in one file.
    words = sorted(unique(TYPES + C + [word for word in MACROS if not word.isupper()]), key=form)
    for initial, group in itertools.groupby(words, lambda word: form(word)[:1]):
        file = File(folder, f"messages_{initial}", "")
        for word in group:
            push = f"option (longlink.push_type) = {File.type()}; " if word in MEMBERS else ""
            file.add(f"message {word} {{ {push}repeated .{word} {word} = 1; }}")
        file.write()
    file = File(folder, "nested", "words.nested")
    file.add('option swift_prefix = "Nested";')
    for index, batch in enumerate(batches(SWIFT, form=str)):
        name = f"Messages{index}"
        file.block(f"message {name}", [f"message {word} {{}}" for word in batch] + [
            f"{file.full(name)}.{word} f{number} = {number};" for word, number in numbered(batch)])
    for index, batch in enumerate(batches(LIBRARY, form=str)):
        file.block(f"message Enums{index}", [
            f"enum {word} {{ ZERO_{number} = 0; }}" for word, number in numbered(batch)])
    file.write()


def fields(folder):
    file = File(folder, "fields", "words.fields")
    file.add('option swift_prefix = "Fields";')
    # A map makes a message of its own for each word, and one that contains itself has storage
    # behind each property.
    kinds = {
        "Number": (WORDS, "uint32"), "Map": (MEMBERS, "map<string, bool>"),
        "Tree": (MEMBERS, "{message}"),
    }
    for kind, (words, type) in kinds.items():
        for index, batch in enumerate(batches(words)):
            name = f"{kind}s{index}"
            file.block(f"message {name}", [
                f"{type.format(message=file.full(name))} {word} = {number};"
                for word, number in numbered(batch)])
    for index, batch in enumerate(batches(VALUES)):
        file.block(f"message Oneofs{index}", [
            f"oneof {word} {{ uint32 f{number} = {number}; }}" for word, number in numbered(batch)])
        file.block(f"message Cases{index}", ["oneof choice {"] + [
            f"  string {word} = {number};" for word, number in numbered(batch)] + ["}"])
    file.write()


def files(folder):
    """Keywords in packages, and as names of files; no message beside them may be called so."""
    for index, batch in enumerate(batches(KEYWORDS, size=10)):
        file = File(folder / "files", batch[0], ".".join(batch))
        file.add(f"message InFile{index} {{ bool is = 1; }}")
        file.write()


def collisions(folder):
    """Names that are the same as others only in Swift, or only in C."""
    file = File(folder, "collisions", "words.collisions")
    file.add((HERE / "collisions.txt").read_text())
    file.write()


def enums(folder):
    """Enumerations, in a module of their own: in Swift they are called like the messages."""
    file = File(folder, "enums", "enums")
    for index, word in enumerate(TYPES):
        file.add(f"enum {word} {{ TOP_{index} = 0; }}")
    # These words begin a statement of their own.
    values = [word for word in TYPES if word not in ("option", "reserved")]
    for index, batch in enumerate(batches(values)):
        file.block(f"message EnumValues{index}", ["enum Word {"] + [
            f"  {word} = {number - 1};" for word, number in numbered(batch)] + [
            "}", "Word holder = 1;"])
    file.write()


# What takes and what returns items, for each kind of stream.
STREAMS = (("", "stream "), ("stream ", ""), ("stream ", "stream "))


def methods(file, words, message, name="Methods", kinds=(("", ""),)):
    """Services with a method for each word, which takes and returns a message, or streams of it."""
    for index, batch in enumerate(batches(words)):
        members = []
        for number, word in enumerate(batch):
            taken, returned = kinds[number % len(kinds)]
            members.append(
                f"rpc {word}({taken}{message(word)}) returns ({returned}{message(word)}) "
                f"{{ option (longlink.message_type) = {File.type()}; }}")
        file.block(f"service {name}{index}", members)


def services(folder):
    file = File(folder, "services", "services")
    file.add("message Ask {}")
    # Each only once, with and without the word that all services may end with.
    names = {form(word).removesuffix("service") or "service": word for word in reversed(SWIFT)}
    for word in names.values():
        # An enumeration that is called as what a service makes is refused.
        if not {word + part for part in ("Client", "Methods", "Service")} & set(TYPES):
            file.block(f"service {word}", [])
    methods(file, SWIFT, lambda word: file.full("Ask"))
    methods(file, SWIFT, lambda word: file.full("Ask"), "Streams", STREAMS)
    file.write()


def stubs(folder):
    """What is generated for messages of SwiftProtobuf, of which each takes long to compile."""
    file = File(folder, "stubs", "stubs")
    for word in unique(MENTIONED + LONGLINK):
        file.add(f"message {word} {{ option (longlink.push_type) = {File.type()}; }}")
    methods(file, MENTIONED, file.full)
    methods(file, MENTIONED, file.full, "Streams", STREAMS)
    file.write()


def main():
    folder = pathlib.Path(sys.argv[1])
    for write in (messages, fields, collisions):
        write(folder / "words")
    for write in (enums, services, files):
        write(folder / "enums")
    stubs(folder / "stubs")


main()
