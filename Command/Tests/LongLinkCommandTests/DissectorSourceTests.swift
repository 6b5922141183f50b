// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import Testing

@testable import LongLinkCommand

/// What `longlink dissector` writes, without anybody to read it.
@Suite struct DissectorSourceTests {
  @Test func `constants of Lua are quoted and kept exact`() {
    #expect(LuaValue.string(Array("a\"\\\r\n\u{E9}".utf8)).source() == #""a\"\\\013\010\195\169""#)
    #expect(LuaValue.number(.max).source() == "18446744073709551615.0")
    #expect(LuaValue.list([.number(1), .bool(false)]).source() == "{ 1, false }")
    #expect(LuaValue.table([("end", .list([]))]).source() == #"{ ["end"] = {} }"#)
    #expect(LuaValue.numbered([(7, .string("x"))]).source() == #"{ [7] = "x" }"#)
  }

  @Test func `the port is the one that was given`() {
    #expect(Dissector.native(port: 7001).source.contains("port = 7001"))
  }

  @Test func `fields have unique names`() {
    var fields = DissectorFields()
    #expect(fields.add("serial", width: 4) == "serial")
    #expect(fields.add("serial", width: 8) == "serial")
    #expect(fields.add("serial", width: 8, isBytes: true) == "serial_other")
    #expect(fields.add("time", width: 1) == "time_field")
  }

  @Test func `an invalid layout is refused with the path of the error`() async throws {
    let file = FileManager.default.temporaryDirectory
      .appending(path: "longlink-\(UUID().uuidString)-layout.json")
    defer { try? FileManager.default.removeItem(at: file) }
    for (text, reason) in [
      (#"{"name": "x", "laoyut": {}}"#, "laoyut"),
      ("{", "layout.json:1:2: this is not JSON: it ends prematurely"),
      ("{\"name\": \"é\",\n  \"é\": ?}", "layout.json:2:8: this is not JSON"),
      ("[1]", ": it has the wrong type"),
      (
        #"{"name":"x","layout":{"both":{"header":[{"field":"serial","width":3}]}},"#
          + #""serials":{"client":[1,9]},"maximumBody":1}"#,
        "layout.both.header[0]"
      ),
    ] {
      try Data(text.utf8).write(to: file)
      let written = try await Tool.run("dissector", "--layout", file.path)
      #expect(written.code == 64)
      #expect(written.errors.contains(reason), "\(written.errors)")
    }
    let absent = try await Tool.run("dissector", "--layout", "/nowhere/at.all")
    #expect(absent.code == 64 && absent.errors.contains("/nowhere/at.all"))
  }
}
