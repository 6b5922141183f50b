// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDialects

extension Seeded {
  private mutating func pick<Value>(_ values: Value...) -> Value { values[below(values.count)] }

  /// Some dialect that works.
  mutating func dialect() throws -> FrameDialect {
    while true {
      do {
        return try attempt()
      } catch let error as FrameLayoutError where error.field.hasPrefix("maximumBody") {
        // The length is too narrow for the body that was drawn: the next draw has another.
        continue
      }
    }
  }

  private mutating func attempt() throws -> FrameDialect {
    let delimiter = below(3) > 0 ? nil : delimiter()
    let (type, serial) = (pick(1, 2, 4, 8), pick(2, 4, 8))
    let hasType = below(5) > 0
    let hasCode = below(4) > 0
    let request = shape(type: type, serial, code: hasCode && below(2) == 0, delimiter)
    let response = shape(type: hasType ? type : nil, serial, code: hasCode, delimiter)
    let layout = try FrameLayout(
      byteOrder: pick(.big, .little), request: request, response: response, delimiter: delimiter)
    let target: FrameDialect.Cancel.Target = pick(
      .serial, serial > 2 ? .type : .serial, delimiter?.inside == .refused ? .serial : .body)
    let last: UInt32 = serial == 2 ? 0xFFFF : .max
    let isTwoSided = hasType && below(2) == 0
    return try FrameDialect(
      name: "random",
      layout: layout,
      serials: FrameDialect.Serials(
        client: 20...(isTwoSided ? last / 2 : last),
        server: isTwoSided ? (last / 2 + 1)...last : nil),
      responseType: hasType ? pick(.echo, .offset(0x40), .fixed(0x50)) : .absent,
      heartbeat: FrameDialect.HeartbeatFrames(
        client: pick(nil, FrameDialect.Ping(type: 1, serials: 1...5)),
        server: pick(nil, FrameDialect.Ping(type: 1, serials: 6...9, answer: pick(1, 2, nil)))),
      pushes: FrameDialect.Pushes(
        fromServer: hasType ? [0x60...0x6F] : [], fromClient: [0x70...0x72, 0x74...0x74],
        serial: pick(0, 15)),
      cancel: pick(nil, FrameDialect.Cancel(type: 3, target: target)),
      codes: hasCode
        ? FrameDialect.Codes(
          success: [0, 7], failure: 1,
          errors: [DialectErrorCode(9, "nine", native: .overloaded)]) : nil,
      unknownSerial: pick(.violation, .drop),
      maximumBody: pick(16, 200, 5000))
  }

  private mutating func delimiter() -> FrameLayout.Delimiter {
    let bytes = (0..<1 + below(3)).map { _ in UInt8(below(3)) }
    let escape = UInt8(3 + below(3))
    return FrameLayout.Delimiter(bytes, inside: pick(.lengthChecked, .escaped(escape), .refused))
  }

  private mutating func shape(
    type: Int?, _ serial: Int, code: Bool, _ delimiter: FrameLayout.Delimiter?
  ) -> FrameLayout.Shape {
    var header: [FrameLayout.Field] = [.serial(serial)]
    if let type { header.append(.type(type)) }
    if code { header.append(.code(pick(1, 2, 4, 8))) }
    let isEscaped =
      switch delimiter?.inside {
      case .escaped: true
      case .lengthChecked, .refused, nil: false
      }
    if delimiter == nil || delimiter?.inside == .lengthChecked || below(2) == 0 {
      header.append(.length(pick(1, 2, 4, 8), of: isEscaped ? .body : pick(.body, .rest, .frame)))
    }
    if below(3) == 0 { header.append(.filler(1 + below(5), UInt8(below(256)))) }
    if below(3) == 0 { header.append(.token(1 + below(20))) }
    if below(3) == 0 { header.append(.constant(2, 0xABCD)) }
    header = header.map { below(4) == 0 ? $0.ordered(pick(.big, .little)) : $0 }
    header.shuffle(using: &self)
    var trailer: [FrameLayout.Field] = []
    if below(2) == 0 {
      let names = header.map(\.name)
      let from = names.firstIndex { $0 != "filler" } ?? 0
      let sum = FrameLayout.Field.checksum(
        pick(4, 8), pick(.adler32, .crc32),
        over: pick(.body, .headerAndBody, .range(from: names[from], to: "body")))
      if delimiter == nil, below(2) == 0 {
        trailer.append(sum)
      } else {
        header.insert(sum, at: below(from + 1))
      }
    }
    if delimiter == nil {
      if let type, below(3) == 0 { trailer.append(.repeatedType(type)) }
      if below(4) == 0 { trailer.append(.version(1, 3)) }
      trailer.shuffle(using: &self)
    }
    return FrameLayout.Shape(header: header, trailer: trailer)
  }
}
