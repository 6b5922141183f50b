// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import LongLinkDialects
import LongLinkTestSupport
import Testing

@Suite struct DialectJSONTests {
  private func json(_ dialect: FrameDialect) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    return String(decoding: try encoder.encode(dialect), as: UTF8.self)
  }

  /// What is said of a text that cannot be read.
  private func fault(_ text: String) -> String? {
    do {
      _ = try JSONDecoder().decode(FrameDialect.self, from: Data(text.utf8))
      return nil
    } catch DecodingError.dataCorrupted(let context) {
      return (context.underlyingError as? FrameLayoutError)?.description
    } catch {
      return "another error: \(error)"
    }
  }

  private func bare(_ part: String, _ other: String) throws -> String {
    let file = DialectVector.directory.appending(path: "bare.json")
    let text = try String(contentsOf: file, encoding: .utf8)
    #expect(text.contains(part))
    guard let range = text.range(of: part) else { return text }
    return text.replacingCharacters(in: range, with: other)
  }

  @Test func `what is written is read`() throws {
    let dialects: [FrameDialect] = [
      try .guarded(), .bare, try .small(), try .delimited(.lengthChecked),
      try .delimited(.escaped(0x5C)), try .delimited(.refused, [1, 2, 3], summed: false),
    ]
    for dialect in dialects {
      let text = try json(dialect)
      #expect(try JSONDecoder().decode(FrameDialect.self, from: Data(text.utf8)) == dialect)
    }
    for seed in 0..<300 {
      var dice = Seeded(UInt64(seed))
      let dialect = try dice.dialect()
      let text = try json(dialect)
      #expect(try JSONDecoder().decode(FrameDialect.self, from: Data(text.utf8)) == dialect)
    }
  }

  @Test func `the JSON form is stable`() throws {
    let expected = """
      {"cancel":{"target":"serial","type":65283},\
      "codes":{"errors":[{"code":2,"name":"busy","native":429}],"failure":1,"success":[0]},\
      "heartbeat":{"client":{"answer":65282,"serials":[1,65535],"type":65281},\
      "interval":30000,"timeout":10000},\
      "layout":{"byteOrder":"little","request":{"header":[\
      {"algorithm":"crc32","field":"checksum","over":"headerAndBody","width":4},\
      {"field":"length","of":"frame","width":2},\
      {"field":"type","width":2},{"field":"serial","width":4}]},"response":{"header":[\
      {"algorithm":"crc32","field":"checksum","over":"headerAndBody","width":4},\
      {"field":"length","of":"frame","width":2},\
      {"field":"type","width":2},{"field":"serial","width":4},\
      {"field":"code","width":1}]}},"maximumBody":4096,"name":"small",\
      "pushes":{"fromClient":[[61696,61951]],"fromServer":[[61440,61695]],"serial":0},\
      "responseType":{"offset":16384},\
      "serials":{"client":[1,2147483647],"server":[2147483648,4294967295]},\
      "unknownSerial":"violation"}
      """
    let busy = DialectErrorCode(2, "busy", native: .overloaded)
    let found = try json(.small(errors: [busy]))
    #expect(found == expected)
  }

  @Test func `a key that does not exist is named with its path`() throws {
    let text = try bare("\"width\": 4", "\"widht\": 4")
    #expect(
      fault(text)
        == "layout.request.header[0].widht: unknown key; the keys are "
        + "field, width, name, byteOrder, of, algorithm, over, value")
    #expect(fault(try bare("\"serials\": {", "\"cereals\": {"))?.hasPrefix("cereals: ") == true)
  }

  @Test func `each mistake is named with its path`() throws {
    let mistakes: [(String, String, String)] = [
      ("\"width\": 4", "\"width\": \"four\"", "layout.request.header[0].width: it must be a num"),
      ("\"width\": 4", "\"width\": 1.5", "layout.request.header[0].width: it must be a number"),
      ("\"width\": 4", "\"width\": 3", "layout.request.header[0]: (type) it is 3 bytes wide"),
      ("\"width\": 4", "\"name\": \"t\"", "layout.request.header[0].width: it is missing"),
      ("\"of\": \"body\"", "\"of\": \"tail\"", "layout.request.header[2].of: \"tail\" is not one"),
      ("\"field\": \"type\"", "\"field\": \"kind\"", "layout.request.header[0].field: \"kind\""),
      ("\"width\": 4", "\"width\": 4, \"of\": \"body\"", "layout.request.header[0].of: a type"),
      ("\"big\"", "\"middle\"", "layout.byteOrder: \"middle\" is not one of big, little"),
      ("[\"0x401\", \"0xFFFFFFFE\"]", "[2, 1]", "serials.client: it must be a number, or the"),
      ("[\"0x401\", \"0xFFFFFFFE\"]", "[0, 9]", "serials.client: 0 cannot be"),
      ("\"0x401\"", "\"0xGG\"", "serials.client: "),
      ("\"type\": 1", "\"type\": true", "heartbeat.client.type: it must be a number from"),
      ("\"type\": 1", "\"type\": 2", "pushes.fromServer: a frame from the server could be"),
      ("\"echo\"", "\"absent\"", "responseType: the response shape has a type"),
      ("\"echo\"", "{}", "responseType: it must have either offset or fixed"),
      ("\"drop\"", "\"ignore\"", "unknownSerial: \"ignore\" is not one of violation, drop"),
      ("16777216", "-1", "maximumBody: it must be 1 to"),
      ("\"success\": [200]", "\"success\": []", "codes.success: it must not be empty"),
      ("\"code\": 101", "\"code\": 100", "codes.errors[1]: 100 already has a meaning"),
      ("\"native\": 408", "\"native\": 8388608", "codes.errors[1].native: 8388608 exceeds"),
      ("\"bare\"", "\"a name with blanks\"", "name: a name has 1 to 32 ASCII"),
      ("\"bare\"", "null", "name: it is null"),
      ("60000", "60000.5", "heartbeat.interval: it must be a number from"),
    ]
    for (part, other, expected) in mistakes {
      let found = fault(try bare(part, other)) ?? "nothing"
      #expect(found.hasPrefix(expected), "\(other): \(found)")
    }
  }

  @Test func `numbers may be hexadecimal, and equal shapes stand once`() throws {
    let text = """
      {"name": "x", "layout": {"both": {"header": [
        {"field": "type", "width": 1}, {"field": "serial", "width": 2},
        {"field": "length", "width": 1, "of": "rest"},
        {"field": "filler", "width": 3, "value": "0xFF"}]}},
       "serials": {"client": ["0x1", "0xfff"]}, "maximumBody": 200}
      """
    let dialect = try JSONDecoder().decode(FrameDialect.self, from: Data(text.utf8))
    #expect(dialect.serials.client == 1...0xFFF)
    #expect(dialect.layout.request.header[3] == .filler(3, 0xFF))
    #expect(dialect.layout.request == dialect.layout.response)
    #expect(try json(dialect).contains("\"both\""))
    #expect(
      fault(text.replacing("\"both\"", with: "\"request\": {\"header\": []}, \"both\""))?
        .hasPrefix("layout.both: ") == true)
    #expect(
      fault(text.replacing("\"width\": 3", with: "\"width\": 0"))?
        .hasPrefix("layout.both.header[3]: (filler) ") == true)
  }
}
