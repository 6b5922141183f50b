// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@Suite struct NameTests {
  @Test func `names that would clash are reported`() throws {
    let said = try Protoc.findings(
      Protoc.imported
        + """
        message EchoClient {}
        message self_ {}
        message self {}
        service Echo { rpc Ask(self_) returns (self_) { option (longlink.message_type) = 1; } }
        service EchoService {}
        service Two {
          rpc Say(self_) returns (self_) { option (longlink.message_type) = 2; }
          rpc SubmitSay(self_) returns (self_) { option (longlink.message_type) = 3; }
        }
        service Three {
          rpc Take(stream self_) returns (self_) { option (longlink.message_type) = 4; }
          rpc TakeItems(self_) returns (self_) { option (longlink.message_type) = 5; }
          rpc Watch(self_) returns (stream self_) { option (longlink.message_type) = 6; }
          rpc WatchBlocking(self_) returns (self_) { option (longlink.message_type) = 7; }
        }
        """)
    #expect(
      said.contains(
        "bad.proto:6:1: error: the name EchoClient is taken by EchoClient (bad.proto:3:1): rename "
          + "one of them, or add option swift_prefix = \"…\";"))
    #expect(said.contains("bad.proto:5:1: error: the name self_ is taken by self_ (bad.proto:4:1)"))
    #expect(said.contains("bad.proto:7:1: error: the name EchoMethods is taken by Echo"))
    #expect(said.contains("bad.proto:10:3: error: the name submitSay is taken by Two.Say"))
    #expect(said.contains("bad.proto:14:3: error: the name takeItems is taken by Three.Take"))
    #expect(said.contains("bad.proto:16:3: error: the name watchBlocking is taken by Three.Watch"))
  }

  @Test func `files that would be written to the same path are reported`() throws {
    let protoc = try Protoc(["a/b.proto": "message A {}\n", "a_b.proto": "message B {}\n"])
    defer { protoc.remove() }
    let (status, said) = try protoc.run("", ["a/b.proto", "a_b.proto"])
    #expect(status != 0)
    #expect(
      said.contains("a_b.proto:1:1: error: a_b.proto and a/b.proto both make a_b.longlink.swift"))
  }

  @Test func `messages of two files with the same name in C are reported`() throws {
    let text = "package same;\n"
    let protoc = try Protoc([
      "one.proto": text + "message HTTPBox {}\n", "two.proto": text + "message Httpbox {}\n",
    ])
    defer { protoc.remove() }
    let (status, said) = try protoc.run("", ["one.proto", "two.proto"])
    #expect(status != 0)
    #expect(
      said.contains(
        "two.proto:3:1: error: the name same__httpbox is taken by same.HTTPBox (one.proto:3:1)"))
  }

  @Test func `fields and methods with the same name in Swift get numbers`() throws {
    let protoc = try Protoc([
      "good.proto": Protoc.imported
        + """
        message A {
          message Kind {}
          uint32 value = 1;
          oneof kind { Kind some = 2; }
          oneof VALUE { uint32 none = 3; }
          bytes encoded_byte_count = 4;
          enum Level { LEVEL_NONE = 0; LEVEL_SOME = 1; LEVEL_HIGH = 2; }
          optional Level level = 6;
          string class = 5;
        }
        service S {
          rpc Say(A) returns (A) { option (longlink.message_type) = 5; }
          rpc say(A) returns (A) { option (longlink.message_type) = 6; }
          rpc Init(A) returns (A) { option (longlink.message_type) = 7; }
        }
        """
    ])
    defer { protoc.remove() }
    let (status, said) = try protoc.run("", ["good.proto"])
    #expect(status == 0, "\(said)")
    let swift = try protoc.output("M/good.longlink.swift")
    for line in [
      "public var value_1: Swift.UInt32 = 0", "public var value_3: M::A.Value? = nil",
      "public var kind: M::A.Kind_? = nil", "case some_(M::A.Kind)", "case none_(Swift.UInt32)",
      "case none_\n", "case some_\n", "case high\n",
      "public var encodedByteCount_: [Swift.UInt8] = []", "public var `class`: Swift.String",
      "static var say_5:", "static var say_6:", "static var init_:",
    ] {
      #expect(swift.contains(line), "\(line)")
    }
  }

  @Test func `messages without a package do not hide Swift's names from the code beside them`()
    throws
  {
    let protoc = try Protoc([
      "good.proto": "message Self {}\nmessage IntegerLiteralType {}\nmessage EOF {}\n"
    ])
    defer { protoc.remove() }
    let (status, said) = try protoc.run("", ["good.proto"])
    #expect(status == 0, "\(said)")
    let header = try protoc.output("C/include/good.pb-c.h")
    for name in ["Self", "IntegerLiteralType", "EOF"] {
      #expect(!header.contains("typedef struct \(name) "), "\(name)")
      #expect(header.contains("typedef struct Message\(name)2 "), "\(name)")
    }
  }
}
