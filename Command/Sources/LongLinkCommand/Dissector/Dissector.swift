// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
internal import LongLinkDialects

/// A dissector for Wireshark and tshark, written in Lua: a table that says what the protocol is
/// like, and a program that is the same for every one.
struct Dissector {
  private var fields = DissectorFields()
  private let table: LuaValue

  /// A dissector of the native protocol.
  static func native(port: UInt16) -> Dissector {
    Dissector { fields in nativeTable(port, &fields) }
  }

  init(_ dialect: FrameDialect, port: UInt16) {
    self.init { fields in Dissector.table(dialect, port, &fields) }
  }

  private init(_ make: (inout DissectorFields) -> [(String, LuaValue)]) {
    var fields = DissectorFields()
    let parts = make(&fields)
    let pings: [(String, LuaValue)] = [
      ("pings_per_window", .number(UInt64(Wire.pingsPerWindow))),
      ("ping_window", .number(UInt64(Wire.pingWindow / 1_000_000_000))),
    ]
    table = .table(parts + pings + [("fields", fields.table)])
  }

  /// The program, whole.
  var source: String {
    let program = [
      PackageResources.fields_lua, PackageResources.framing_lua, PackageResources.exchanges_lua,
      PackageResources.display_lua,
    ]
    return """
      -- Written by longlink dissector. Use it with: tshark -X lua_script:FILE, or put it into
      -- Wireshark's folder of personal Lua plugins.

      local protocol = \(table.source())


      """ + String(decoding: program.joined(), as: UTF8.self)
  }
}

extension Dissector {
  /// What everything in a table says of one direction.
  static func bothSides(_ make: (Role) -> LuaValue) -> LuaValue {
    .table([("client", make(.client)), ("server", make(.server))])
  }

  /// What is not a broken rule as such, but worth a look.
  static func notes(unknownSerial: DissectorNote) -> LuaValue {
    let broken = Violation.Rule.allCases.compactMap { rule in
      DissectorNote.text(of: rule).map { text in
        DissectorNote(
          rule.rawValue, text, group: rule == .checksumMismatch ? "CHECKSUM" : "PROTOCOL",
          severity: "ERROR")
      }
    }
    return .table(
      (broken + DissectorNote.further + [unknownSerial]).map { note in
        (
          note.name,
          .table([
            ("text", .string(note.text)), ("group", .string(note.group)),
            ("severity", .string(note.severity)),
          ])
        )
      })
  }
}

/// An expert note of a dissector.
struct DissectorNote {
  let name: String
  let text: String
  let group: String
  let severity: String

  init(_ name: String, _ text: String, group: String = "SEQUENCE", severity: String) {
    self.name = name
    self.text = text
    self.group = group
    self.severity = severity
  }

  static let further = [
    DissectorNote("lateReply", "This request has been answered before", severity: "WARN"),
    DissectorNote("answerToCancelled", "The request was cancelled", severity: "NOTE"),
    DissectorNote("cancelOfNothing", "Nothing that runs is cancelled", severity: "NOTE"),
    DissectorNote("unsolicitedPong", "No ping was seen that this answers", severity: "WARN"),
    DissectorNote("ignoredKind", "Receivers ignore this kind", severity: "NOTE"),
    DissectorNote("failed", "The request failed", group: "RESPONSE_CODE", severity: "NOTE"),
    DissectorNote(
      "skipped", "Behind a broken rule, no frame can be told here", group: "PROTOCOL",
      severity: "WARN"),
    DissectorNote(
      "notReassembled", "The rest of this frame stands elsewhere, and segments are not joined",
      group: "REASSEMBLE", severity: "WARN"),
  ]

  /// What is shown where a rule is broken; nil for one that cannot be told from a capture.
  static func text(of rule: Violation.Rule) -> String? {
    switch rule {
    case .checksumMismatch: "The checksum does not hold"
    case .lengthOverLimit: "The length is over the limit"
    case .unknownKind: "No such kind"
    case .kindNotAgreed: "This kind was not agreed to"
    case .flagNotAllowed: "A flag that is not allowed here"
    case .tagNotAllowed: "A tag that is not allowed here"
    case .typeNotAllowed: "A type that is not allowed here"
    case .sizeNotAllowed: "A size that is not allowed here"
    case .serialOutOfRange: "A serial that is not allowed here"
    case .serialInUse: "A request with this serial is under way"
    case .metadataTooLong: "The metadata is longer than the body"
    case .malformedControl: "This message cannot be decoded"
    case .helloNotFirst: "A hello behind another frame"
    case .unexpectedHello: "A second hello, or one from a server"
    case .unexpectedWelcome: "A welcome that was not asked for"
    case .fragmentMismatch: "This fragment does not continue what came before"
    case .truncatedFrame: "The stream ends within a frame"
    case .fieldMismatch: "Not what has to stand here"
    case .delimiterMissing: "No delimiter where one has to be"
    case .featureNotOffered: "A feature that the hello did not name"
    case .versionNotOffered: "A version above the hello's"
    case .tooManyPings: "Too many pings in a short time"
    case .frameTimeout, .firstFrameTimeout: nil
    }
  }
}
