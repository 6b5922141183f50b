// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

// What a receiver sends of streams. In how many frames it sends an item, and in how many lumps it
// grants credit, is its own business.
extension VectorRunner {
  func observeStream(_ frame: RawFrame) {
    let serial = frame.serial
    let fields = ["serial=\(serial)"]
    switch FrameKind(wire: frame.kind) {
    case .item:
      partialItems[serial, default: []] += frame.body
      guard frame.flags == 0, let body = partialItems.removeValue(forKey: serial) else { return }
      replies.append(Expectation(name: "item", fields: fields, body: body, isReply: true))
    case .end: replies.append(Expectation(name: "end", fields: fields, isReply: true))
    default: granted[serial, default: 0] += Int(RawFrame.number(frame.body[...]))
    }
  }

  /// Checks that the receiver has granted enough.
  func checkCredit(_ expected: Expectation) {
    var numbers: [String: Int] = [:]
    for field in expected.fields {
      let parts = field.split(separator: "=")
      if parts.count == 2 { numbers[String(parts[0])] = Int(parts[1]) }
    }
    guard let serial = numbers["serial"], let least = numbers["least"] else {
      problems.append("expected \(expected.summary), which says too little")
      return
    }
    let found = granted[UInt32(serial)] ?? 0
    if found < least { problems.append("expected \(expected.summary), found \(found) bytes") }
  }
}
