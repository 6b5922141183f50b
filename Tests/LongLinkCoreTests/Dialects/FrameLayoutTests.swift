// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDialects
import Testing

@Suite struct FrameLayoutTests {
  typealias Field = FrameLayout.Field

  static let usual: [Field] = [.type(4), .serial(4), .length(4)]

  /// Why a layout is refused that is the same in both directions; nil where it is not.
  private func fault(
    _ header: [Field], _ trailer: [Field] = [], _ delimiter: FrameLayout.Delimiter? = nil
  ) -> String? {
    do throws(FrameLayoutError) {
      _ = try FrameLayout(
        both: FrameLayout.Shape(header: header, trailer: trailer), delimiter: delimiter)
      return nil
    } catch {
      return error.description
    }
  }

  private func expect(
    _ start: String, _ header: [Field], _ trailer: [Field] = [],
    _ delimiter: FrameLayout.Delimiter? = nil, line: Int = #line
  ) {
    let found = fault(header, trailer, delimiter) ?? "nothing"
    #expect(found.hasPrefix("request.\(start)"), "line \(line): \(found)")
  }

  @Test func `a layout without a part that it needs is refused`() {
    #expect(fault(Self.usual) == nil)
    expect("header: without a delimiter, it needs a length", [.type(4), .serial(4)])
    expect("header: it has no serial", [.type(4), .length(4)])
    expect("header: it has no type", [.serial(4), .length(4)])
    expect("header: it has no serial", [])
    let lines = FrameLayout.Delimiter([10], inside: .refused)
    #expect(fault([.type(4), .serial(4)], [], lines) == nil)
    #expect(throws: Never.self) {
      try FrameLayout(
        request: FrameLayout.Shape(header: Self.usual),
        response: FrameLayout.Shape(header: [.serial(4), .length(4)]))
    }
  }

  @Test func `a field that may occur only once is refused if it occurs twice`() {
    expect("header[3]: (serial) a second serial; the first is header[1]", Self.usual + [.serial(2)])
    expect("header[3]: (length) a second length", Self.usual + [.length(2)])
    expect("header[3]: (again) a second type", Self.usual + [Field.type(2).named("again")])
    expect("header[4]: (code) a second code", Self.usual + [.code(1), .code(1)])
    expect("header[4]: (token) a second", Self.usual + [.token(1), .token(1)])
    expect("header[4]: (version) a second", Self.usual + [.version(1, 1), .version(1, 1)])
    expect(
      "trailer[0]: (checksum) a second checksum; the first is header[3]",
      Self.usual + [.checksum(4, .adler32, over: .body)], [.checksum(4, .crc32, over: .body)])
    expect("trailer[1]: (repeatedType) a second", Self.usual, [.repeatedType(4), .repeatedType(4)])
    expect(
      "header[4]: (constant) another field has this name",
      Self.usual + [.constant(1, 1), .constant(1, 2)])
    #expect(fault(Self.usual + [.filler(1), .filler(1)]) == nil)
  }

  @Test func `a width that a field cannot have is refused`() {
    for width in [-1, 0, 3, 5, 16] {
      expect("header[0]: (type) it is \(width) bytes wide", [.type(width), .serial(4), .length(4)])
      expect("header[3]: (checksum) it is", Self.usual + [.checksum(width, .crc32, over: .body)])
    }
    expect("header[3]: (checksum) it is 2", Self.usual + [.checksum(2, .adler32, over: .body)])
    expect("header[3]: (filler) it is 0", Self.usual + [.filler(0)])
    expect("header[3]: (filler) it is 256", Self.usual + [.filler(256)])
    expect("header[3]: (token) it is 256", Self.usual + [.token(256)])
    expect("header[3]: (constant) 256 does not fit", Self.usual + [.constant(1, 256)])
    expect("header[3]: (version) 65536 does not", Self.usual + [.version(2, 65_536)])
    #expect(fault(Self.usual + [.constant(8, .max), .filler(255), .token(255)]) == nil)
    let wide = (0..<5).map { _ in Field.filler(255) }
    expect("header: it is longer than 1024 bytes", Self.usual + wide)
    expect("header: it is longer than 1024 bytes", Self.usual, wide)
  }

  @Test func `an invalid name is refused`() {
    for name in ["", "a b", "é", "body", String(repeating: "x", count: 33), "a.b"] {
      expect("header[3]: (\(name)) a name has 1 to 32", Self.usual + [Field.code(1).named(name)])
    }
  }

  @Test func `a field that the receiver needs before the body must not follow the body`() {
    expect("trailer[0]: (code) it must be in the header", Self.usual, [.code(1)])
    expect("trailer[0]: (token) it must be in", Self.usual, [.token(1)])
    expect("trailer[0]: (serial) it must be in", [.type(4), .length(4)], [.serial(4)])
    expect("trailer[0]: (repeatedType) no type of the same width", Self.usual, [.repeatedType(2)])
    expect(
      "header[0]: (repeatedType) no type of the same", [.repeatedType(4)] + Self.usual)
  }

  @Test func `a checksum over itself, or over a missing part, is refused`() {
    func sum(_ from: String, _ to: String) -> Field {
      .checksum(4, .crc32, over: .range(from: from, to: to))
    }
    expect("header[3]: (checksum) a checksum cannot cover", Self.usual + [sum("type", "body")])
    expect("header[3]: (checksum) a checksum cannot", Self.usual + [sum("checksum", "checksum")])
    expect("trailer[0]: (checksum) a checksum cannot", Self.usual, [sum("body", "checksum")])
    expect("header[3]: (checksum) no part is named \"kind\"", Self.usual + [sum("kind", "body")])
    expect(
      "header[3]: (checksum) \"body\" comes after \"type\"", Self.usual + [sum("body", "type")])
    expect(
      "header[5]: (checksum) several parts are named \"filler\"",
      Self.usual + [.filler(1), .filler(1), sum("filler", "body")])
    #expect(fault(Self.usual + [sum("type", "length")]) == nil)
    #expect(fault(Self.usual, [sum("type", "body")]) == nil)
    #expect(fault([sum("type", "body")] + Self.usual) == nil)
    #expect(fault(Self.usual + [.checksum(8, .crc32, over: .headerAndBody)]) == nil)
  }

  @Test func `an unusable delimiter is refused`() {
    func delimiter(_ bytes: [UInt8], _ inside: FrameLayout.Delimiter.Inside) -> String? {
      fault([.type(4), .serial(4)], [], FrameLayout.Delimiter(bytes, inside: inside))
    }
    #expect(delimiter([], .refused) == "delimiter.bytes: a delimiter has 1 to 8 bytes; this has 0")
    #expect(delimiter(Array(0..<9), .refused)?.hasPrefix("delimiter.bytes: ") == true)
    #expect(
      delimiter([13, 10], .escaped(10))
        == "delimiter.escape: the escape byte 10 is part of the delimiter")
    #expect(delimiter([10], .lengthChecked)?.hasPrefix("request.header: it needs a length") == true)
    #expect(delimiter([10], .escaped(92)) == nil)
    let lines = FrameLayout.Delimiter([10], inside: .refused)
    expect("trailer: delimited frames end", Self.usual, [.filler(1)], lines)
    let escaped = FrameLayout.Delimiter([10], inside: .escaped(92))
    expect(
      "header: if bodies are escaped", [.type(4), .serial(4), .length(4, of: .rest)], [],
      escaped)
  }

  @Test func `the direction at fault is named`() {
    #expect(
      throws: FrameLayoutError(
        "response.header", "without a delimiter, it needs a length to end frames")
    ) {
      try FrameLayout(
        request: FrameLayout.Shape(header: Self.usual),
        response: FrameLayout.Shape(header: [.type(4), .serial(4)]))
    }
  }

  @Test func `a diagram shows what is not aligned, and the delimiter`() throws {
    let layout = try FrameLayout(
      both: FrameLayout.Shape(
        header: [
          .version(1, 2), .constant(2, 0xBEEF), .type(2), .serial(8), .filler(9), .length(1),
        ]),
      delimiter: FrameLayout.Delimiter([13, 10], inside: .escaped(92)))
    #expect(
      layout.diagram == """
         0                   1                   2                   3
         0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
        +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
        |   version 2   |        constant 0xBEEF        |     type      |  0
        +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
        |               |                                               |  4
        +-+-+-+-+-+-+-+-+                                               +
        |                            serial                             |  8
        +               +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
        |               |                                                  12
        +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
        /                        filler, 9 bytes                        /  13
        +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
        |    length     |           delimiter           |                  22
        +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
        /                        body (escaped)                         /  25
        +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
        |           delimiter           |                                  +0
        +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+

        """)
  }
}
