// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
internal import LongLinkDialects

extension Dissector {
  static func table(
    _ dialect: FrameDialect, _ port: UInt16, _ fields: inout DissectorFields
  ) -> [(String, LuaValue)] {
    let name = dialect.name.lowercased()
    var parts: [(String, LuaValue)] = [
      ("name", .string(name)),
      ("title", .string(dialect.name)),
      ("port", .number(UInt64(port))),
      ("maximum", .number(UInt64(dialect.maximumBody))),
      // The violation of a frame that no rule matches: only if the other side makes no requests.
      ("unknown", .string(Violation.Rule.serialOutOfRange.rawValue)),
      ("wrong_type", .string(Violation.Rule.typeNotAllowed.rawValue)),
      ("unknown_serial", .string(dialect.unknownSerial.rawValue)),
    ]
    if let delimiter = dialect.layout.delimiter {
      var marks: [(String, LuaValue)] = [("bytes", .string(delimiter.bytes))]
      switch delimiter.inside {
      case .lengthChecked: marks.append(("inside", .string("lengthChecked")))
      case .refused: marks.append(("inside", .string("refused")))
      case .escaped(let escape):
        marks += [("inside", .string("escaped")), ("escape", .number(UInt64(escape)))]
      }
      parts.append(("delimiter", .table(marks)))
    }
    let client = shape(dialect, from: .client, &fields)
    let server = shape(dialect, from: .server, &fields)
    let codes = dialect.codes
    if let offset = dialect.responseType.offset {
      parts.append(("response_offset", .number(UInt64(offset))))
    }
    parts += [
      ("shapes", .table([("client", client), ("server", server)])),
      ("rules", bothSides { .list(rules(dialect, from: $0)) }),
      ("has_codes", .bool(dialect.layout.response.header.contains { $0.meaning == .code })),
      ("codes", .numbered((codes?.names ?? []).map { (UInt64($0), .string($1)) })),
      ("successes", .numbered((codes?.success ?? []).map { (UInt64($0), .bool(true)) })),
      ("messages", .table([])),
      ("notes", notes(unknownSerial: note(of: dialect.unknownSerial))),
    ]
    return parts
  }

  private static func note(of rule: FrameDialect.UnknownSerial) -> DissectorNote {
    let text = "No request with this serial was seen"
    return switch rule {
    // If the capture has the connection's beginning, the broken rule is noted instead.
    case .violation, .drop: DissectorNote("unknownSerial", text, severity: "WARN")
    case .heartbeat:
      DissectorNote("unknownSerial", "\(text): it is a heartbeat", severity: "NOTE")
    }
  }

  // MARK: - Shapes

  private static func shape(
    _ dialect: FrameDialect, from role: Role, _ fields: inout DissectorFields
  ) -> LuaValue {
    let layout = dialect.layout
    let plan = FramePlan(layout, from: role)
    let shape = layout.shape(from: role)
    func list(_ part: [FrameLayout.Field]) -> LuaValue {
      .list(part.map { field($0, dialect, plan, &fields) })
    }
    var parts: [(String, LuaValue)] = [
      ("length", .number(UInt64(plan.headerLength))),
      ("tail", .number(UInt64(plan.trailerLength))),
      ("header", list(shape.header)),
      ("trailer", list(shape.trailer)),
    ]
    if let sum = plan.sum { parts.append(("sum", table(of: sum))) }
    return .table(parts)
  }

  static func table(of sum: FramePlan.Sum) -> LuaValue {
    func stretch(_ name: String, _ range: Range<Int>) -> LuaValue {
      .list([
        .string(name), .number(UInt64(range.lowerBound)), .number(UInt64(range.count)),
      ])
    }
    let over =
      sum.header.map { stretch("header", $0) } + (sum.body ? [.list([.string("body")])] : [])
      + sum.trailer.map { stretch("trailer", $0) }
    return .table([
      ("algorithm", .string(sum.algorithm.rawValue)),
      ("offset", .number(UInt64(sum.slot.offset))),
      ("width", .number(UInt64(sum.slot.width))),
      ("little", .bool(sum.slot.isLittle)),
      ("is_trailer", .bool(sum.slot.isTrailer)),
      ("over", .list(over)),
    ])
  }

  private static func field(
    _ field: FrameLayout.Field, _ dialect: FrameDialect, _ plan: FramePlan,
    _ fields: inout DissectorFields
  ) -> LuaValue {
    let isLittle = (field.byteOrder ?? dialect.layout.byteOrder) == .little
    var further: [(String, LuaValue)] = []
    var (base, values, isBytes) = ("dec", [(UInt64, String)](), false)
    switch field.meaning {
    case .type, .serial, .repeatedType: break
    case .token, .filler: isBytes = true
    case .checksum: base = "hex"
    case .code:
      values = (dialect.codes?.names ?? []).map { (UInt64($0), $1) }
    case .length:
      further.append(("bias", .number(UInt64(plan.lengthBias))))
    case .constant(let value):
      base = "hex"
      further.append(("literal", .string(hex(value, field.width, isLittle))))
    case .version(let value):
      further.append(("literal", .string(hex(value, field.width, isLittle))))
    }
    let name = fields.add(
      field.name, width: field.width, isBytes: isBytes, base: base, values: values)
    return .table(
      [
        ("filter", .string(name)), ("title", .string(field.name)),
        ("means", .string(field.meaning.word)),
        ("width", .number(UInt64(field.width))), ("little", .bool(isLittle)),
        ("bytes", .bool(isBytes)),
      ] + further)
  }

  /// The bytes of a number as in a frame, in hexadecimal.
  private static func hex(_ value: UInt64, _ width: Int, _ isLittle: Bool) -> String {
    let bytes = (0..<width).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * $0)) }
    return (isLittle ? bytes : bytes.reversed()).map { byte in
      let digits = String(byte, radix: 16, uppercase: true)
      return digits.count == 1 ? "0" + digits : digits
    }.joined()
  }

  // MARK: - Rules

  /// The rules for the frames from a side: the first that matches a frame applies.
  private static func rules(_ dialect: FrameDialect, from role: Role) -> [LuaValue] {
    let hasType = dialect.layout.shape(from: role).header.contains { $0.meaning == .type }
    var rules: [DissectorRule] = []
    func types(_ range: ClosedRange<UInt32>) -> [ClosedRange<UInt32>]? { hasType ? [range] : nil }
    if let ping = dialect.heartbeat[role] {
      rules.append(
        DissectorRule("ping", types: types(ping.type...ping.type), serials: ping.serials))
    }
    if let ping = dialect.heartbeat[role.peer], let answer = ping.answer {
      rules.append(DissectorRule("pong", types: types(answer...answer), serials: ping.serials))
    }
    if let asked = dialect.serials[role], hasType, let cancel = dialect.cancel {
      var rule = DissectorRule("cancel", types: [cancel.type...cancel.type], serials: nil)
      rule.target = cancel.target.rawValue
      switch cancel.target {
      case .serial: rule.mustSerials = [asked]
      case .type: rule.mustSerials = [0...Wire.tagMask]
      case .body:
        let serial = dialect.layout.shape(from: role).header.first { $0.meaning == .serial }
        rule.isLittle = (serial?.byteOrder ?? dialect.layout.byteOrder) == .little
        rule.sizes = (serial?.width).map { $0...$0 }
        rule.mustName = asked
      }
      rules.append(rule)
    }
    if hasType, !dialect.pushes[role].isEmpty {
      var rule = DissectorRule("push", types: dialect.pushes[role], serials: nil)
      rule.showsType = true
      rules.append(rule)
    }
    if let own = dialect.serials[role] {
      var rule = DissectorRule("request", types: nil, serials: own)
      rule.mustTypes = hasType ? [0...Wire.tagMask] : nil
      rule.showsType = true
      rules.append(rule)
    }
    if let asked = dialect.serials[role.peer] {
      var rule = DissectorRule("response", types: nil, serials: asked)
      if hasType { rule.mustTypes = dialect.responseType.allowed.map { [$0] } }
      rules.append(rule)
      rules.append(unknown(dialect.unknownSerial, from: role))
    }
    return rules.map(\.table)
  }

  private static func unknown(
    _ meaning: FrameDialect.UnknownSerial, from role: Role
  ) -> DissectorRule {
    var rule = DissectorRule("response", types: nil, serials: nil)
    switch meaning {
    case .drop: break
    case .heartbeat where role == .server: rule = DissectorRule("ping", types: nil, serials: nil)
    case .heartbeat, .violation: rule.breaks = .serialOutOfRange
    }
    return rule
  }
}

extension FrameDialect.Codes {
  /// Every code that has a name, and its name.
  fileprivate var names: [(UInt32, String)] {
    success.map { ($0, "success") } + errors.map { ($0.code, $0.name) }
  }
}

extension FrameDialect.ResponseType {
  /// The type of a response minus that of its request; nil if they are unrelated.
  fileprivate var offset: UInt32? {
    switch self {
    case .echo: 0
    case .offset(let offset): offset
    case .fixed, .absent: nil
    }
  }

  /// The types that a response can have.
  fileprivate var allowed: ClosedRange<UInt32>? {
    switch self {
    case .echo: 0...Wire.tagMask
    case .offset(let offset): offset...UInt32(clamping: UInt64(offset) + UInt64(Wire.tagMask))
    case .fixed(let type): type...type
    case .absent: nil
    }
  }
}

/// How a kind of frame is recognized, and what such a frame must be like.
struct DissectorRule {
  let kind: String
  var kinds: ClosedRange<UInt32>?
  let types: [ClosedRange<UInt32>]?
  let serials: ClosedRange<UInt32>?
  var mustTypes: [ClosedRange<UInt32>]?
  var mustSerials: [ClosedRange<UInt32>]?
  /// The serials that a body can name.
  var mustName: ClosedRange<UInt32>?
  var sizes: ClosedRange<Int>?
  /// The two bits of flags: 2 for metadata, 1 for more fragments.
  var flags: ClosedRange<UInt32>?
  /// The longest body, if it differs from the protocol's.
  var limit: Int?
  /// The rule that every such frame breaks.
  var breaks: Violation.Rule?
  var target: String?
  var isLittle = false
  var showsType = false
  var fragments = false

  init(_ kind: String, types: [ClosedRange<UInt32>]?, serials: ClosedRange<UInt32>?) {
    self.kind = kind
    self.types = types
    self.serials = serials
  }

  var table: LuaValue {
    var parts: [(String, LuaValue)] = [("kind", .string(kind))]
    var must: [(String, LuaValue)] = []
    if let kinds { parts.append(("kinds", .list([.range(kinds)]))) }
    if let types { parts.append(("types", .list(types.map(LuaValue.range)))) }
    if let serials { parts.append(("serials", .list([.range(serials)]))) }
    if let mustTypes { must.append(("types", .list(mustTypes.map(LuaValue.range)))) }
    if let mustSerials { must.append(("serials", .list(mustSerials.map(LuaValue.range)))) }
    if let mustName { must.append(("body", .list([.range(mustName)]))) }
    if let sizes {
      must.append(
        ("sizes", .list([.range(UInt64(sizes.lowerBound), UInt64(sizes.upperBound))])))
    }
    if let flags { must.append(("flags", .list([.range(flags)]))) }
    if !must.isEmpty { parts.append(("must", .table(must))) }
    if let limit { parts.append(("limit", .number(UInt64(limit)))) }
    if let breaks { parts.append(("breaks", .string(breaks.rawValue))) }
    if let target { parts.append(("target", .string(target))) }
    if isLittle { parts.append(("little", .bool(true))) }
    if showsType { parts.append(("shows_type", .bool(true))) }
    if fragments { parts.append(("fragments", .bool(true))) }
    return .table(parts)
  }
}
