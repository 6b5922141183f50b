// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
internal import LongLinkDialects

extension Dissector {
  /// The protocol of `Protocols/wire.md`.
  static func nativeTable(
    _ port: UInt16, _ fields: inout DissectorFields
  ) -> [(String, LuaValue)] {
    _ = fields.add("metadata_block", title: "Metadata", width: 0, isBytes: true)
    let shape = nativeShape(&fields)
    return [
      ("name", .string("longlink")),
      ("title", .string("LongLink")),
      ("port", .number(UInt64(port))),
      ("maximum", .number(UInt64(Wire.defaultBody))),
      ("unknown", .string(Violation.Rule.unknownKind.rawValue)),
      ("wrong_type", .string(Violation.Rule.tagNotAllowed.rawValue)),
      ("unknown_serial", .string(FrameDialect.UnknownSerial.drop.rawValue)),
      ("fragment_limit", .number(UInt64(Wire.fragmentLimit))),
      ("shapes", bothSides { _ in shape }),
      ("rules", bothSides { .list(nativeRules(from: $0).map(\.table)) }),
      ("has_codes", .bool(true)),
      ("codes", .numbered(nativeCodes.map { (UInt64($0.rawValue), .string($1)) })),
      ("successes", .numbered([(UInt64(ResponseCode.ok.rawValue), .bool(true))])),
      ("messages", messages),
      ("recording", recording),
      (
        "notes",
        notes(
          unknownSerial: DissectorNote(
            "unknownSerial", "No request with this serial was seen", severity: "WARN"))
      ),
    ]
  }

  /// What the dissector of recordings needs to know.
  private static var recording: LuaValue {
    .table([
      (
        "events",
        .numbered(RecordedEvent.allCases.map { (UInt64($0.rawValue), .string($0.name)) })
      ),
      ("began", .number(UInt64(RecordedEvent.began.rawValue))),
      ("request", .number(UInt64(FrameKind.request.rawValue))),
      ("response", .number(UInt64(FrameKind.response.rawValue))),
    ])
  }

  static let nativeCodes: [(ResponseCode, String)] = [
    (.ok, "OK"), (.malformed, "malformed"), (.unauthenticated, "unauthenticated"),
    (.forbidden, "forbidden"), (.unknownType, "unknown message type"),
    (.deadlinePassed, "deadline passed"), (.conflict, "idempotency conflict"),
    (.gone, "no longer kept"), (.preconditionFailed, "other key space or time"),
    (.tooLarge, "too large"), (.overloaded, "overloaded"), (.cancelled, "cancelled"),
    (.failed, "handler failed"), (.draining, "draining"),
  ]

  // MARK: - The header

  private struct Part {
    let role: String
    let title: String
    let mask: UInt64
    var filter: String?
    var base = "dec"
    var values: [(UInt64, String)] = []
    /// The only kind of frame that has it, or the only one that does not.
    var only: String?
    var except: String?
  }

  private static let parts = [
    Part(role: "flags", title: "Flags", mask: 3 << 30),
    Part(
      role: "has_metadata", title: "Begins with metadata", mask: 1 << 31, filter: "metadata_flag",
      values: [(0, "no"), (1, "yes")]),
    Part(
      role: "has_more", title: "More follows", mask: 1 << 30, filter: "more_flag",
      values: [(0, "no"), (1, "yes")]),
    Part(
      role: "kind", title: "Kind", mask: 0x3F << 24, filter: "kind_number", base: "hex",
      values: FrameKind.allCases.map { (UInt64($0.rawValue), "\($0)") }),
    Part(role: "type", title: "Tag", mask: 0xFF_FFFF, filter: "tag", except: "response"),
    Part(
      role: "refused", title: "Refused", mask: UInt64(Wire.refusedBit), filter: "refused",
      values: [(0, "no"), (1, "yes")], only: "response"),
    Part(
      role: "code", title: "Code", mask: UInt64(Wire.codeMask), filter: "code",
      values: nativeCodes.map { (UInt64($0.rawValue), $1) }, only: "response"),
  ]

  private static func nativeShape(_ fields: inout DissectorFields) -> LuaValue {
    func field(
      _ name: String, _ means: String, base: String = "dec",
      _ further: [(String, LuaValue)] = []
    ) -> LuaValue {
      let filter = fields.add(name, width: 4, base: base)
      return .table(
        [
          ("filter", .string(filter)), ("title", .string(name)), ("means", .string(means)),
          ("width", .number(4)), ("little", .bool(false)), ("bytes", .bool(false)),
        ] + further)
    }
    let parts = parts.map { part -> LuaValue in
      let unit = part.mask & ~(part.mask - 1)
      var table: [(String, LuaValue)] = [
        ("role", .string(part.role)), ("unit", .number(unit)),
        ("count", .number(part.mask / unit + 1)),
      ]
      if let filter = part.filter {
        let name = fields.add(
          filter, title: part.title, width: 4, base: part.base, values: part.values,
          mask: part.mask)
        table.append(("filter", .string(name)))
      }
      if let only = part.only { table.append(("only", .string(only))) }
      if let except = part.except { table.append(("except", .string(except))) }
      return .table(table)
    }
    return .table([
      ("length", .number(UInt64(NativeLayout.headerLength))),
      ("tail", .number(0)),
      (
        "header",
        .list([
          field("word", "word", base: "hex", [("parts", .list(parts))]),
          field("serial", "serial"),
          field("length", "length", [("bias", .number(0))]),
          field("checksum", "checksum", base: "hex"),
        ])
      ),
      ("trailer", .list([])),
      (
        "sum",
        .table([
          ("algorithm", .string(FrameLayout.Checksum.adler32.rawValue)),
          ("offset", .number(12)), ("width", .number(4)), ("little", .bool(false)),
          ("is_trailer", .bool(false)),
          (
            "over",
            .list([
              .list([.string("header"), .number(0), .number(12)]), .list([.string("body")]),
            ])
          ),
        ])
      ),
    ])
  }

  // MARK: - The kinds

  static func nativeRules(from role: Role) -> [DissectorRule] {
    FrameKind.allCases.map { kind in
      let name =
        switch (kind, role) {
        case (.ignorable, _): "ignored"
        // Its body is a message, and that of the client's renewal is a credential.
        case (.renewal, .server): "renewed"
        default: "\(kind)"
        }
      var rule = DissectorRule(name, types: nil, serials: nil)
      let first = UInt32(kind.rawValue)
      rule.kinds = first...(kind == .ignorable ? 0x3F : first)
      let allowed = FrameRule(kind)
      let serials = allowed.serials(from: role)
      rule.mustSerials = serials.isEmpty ? nil : serials
      switch allowed.content {
      case .message:
        rule.showsType = kind != .response
        rule.fragments = true
      case .item:
        rule.mustTypes = [0...0]
        rule.flags = 0...1
        rule.sizes = 0...Wire.fragmentLimit
        rule.fragments = true
      case .number(let size):
        rule.mustTypes = [0...0]
        rule.flags = 0...0
        rule.sizes = size...size
      case .control(let limit):
        rule.mustTypes = [0...0]
        rule.flags = 0...0
        if limit == Wire.controlLimit { rule.limit = limit } else { rule.sizes = 0...limit }
      case .ignored:
        break
      case .renewal:
        rule.mustTypes = [0...(role == .client ? 0 : Wire.codeMask)]
        rule.flags = 0...0
        rule.sizes = (role == .client ? 1 : 0)...Wire.controlLimit
      }
      switch (kind, role) {
      case (.response, _):
        let forbidden = FrameRule.forbiddenResponseTag
        rule.mustTypes = [0...forbidden - 1, forbidden + 1...Wire.tagMask]
      case (.cancel, _): rule.target = FrameDialect.Cancel.Target.serial.rawValue
      case (.hello, .server): rule.breaks = .unexpectedHello
      case (.welcome, .client): rule.breaks = .unexpectedWelcome
      default: break
      }
      return rule
    }
  }

  // MARK: - The control messages

  /// Their fields, as `Protocols/control.proto` describes them.
  private static var messages: LuaValue {
    .table([
      ("hello", message("hello", Hello.fields)),
      ("welcome", message("welcome", Welcome.fields)),
      ("goaway", message("goaway", GoAway.fields)),
      ("renewed", message("renewed", Renewed.fields)),
      ("metadata", message("metadata", Metadata.fields)),
    ])
  }

  private static func message(_ name: String, _ fields: [ControlField]) -> LuaValue {
    let fields = fields.map { field -> (UInt64, LuaValue) in
      var table: [(String, LuaValue)] = [
        ("name", .string(field.name)), ("title", .string(field.name)),
        ("filter", .string("\(name).\(field.name)")), ("type", .string(field.kind.rawValue)),
      ]
      if let size = field.size { table.append(("size", .number(UInt64(size)))) }
      return (UInt64(field.number), .table(table))
    }
    return .table([("fields", .numbered(fields))])
  }
}
