// SPDX-License-Identifier: Apache-2.0

extension FrameRule {
  /// Checks a header against the rules of its kind and the agreed features, before the body has
  /// arrived. `most` is the largest body that this side accepts.
  @inline(__always)
  static func validate(
    _ head: FrameHead, from sender: Role, _ features: Features, most: Int
  ) throws(Violation) {
    let rule = FrameRule(head.kind)
    guard rule.admits(head.serial, from: sender) else {
      let isAgreed = features.contains(FrameRule.features(head.kind))
      throw Violation(isAgreed ? .serialOutOfRange : .kindNotAgreed, head)
    }
    switch rule.content {
    case .message: try validateMessage(head, features, most: most)
    case .item: try validateItem(head, features, most: most)
    case .control(let limit):
      let isLong = limit == Wire.controlLimit
      try validateControl(
        head, features, 0...limit, otherwise: isLong ? .lengthOverLimit : .sizeNotAllowed)
    case .number(let count): try validateControl(head, features, count...count)
    case .ignored: try validateLength(head, most: most)
    case .renewal:
      let least = sender == .client ? 1 : 0
      try validateControl(
        head, features, least...Wire.controlLimit, hasTag: sender == .server)
    }
  }

  static func validateLength(_ head: FrameHead, most: Int) throws(Violation) {
    guard head.length <= most else {
      throw Violation(.lengthOverLimit, head, value: UInt64(head.length))
    }
  }

  @inline(__always)
  private static func validateMessage(
    _ head: FrameHead, _ features: Features, most: Int
  ) throws(Violation) {
    if head.kind == .response, head.tag == forbiddenResponseTag {
      throw Violation(.tagNotAllowed, head, value: UInt64(head.tag))
    }
    try validateLength(head, most: most)
    if head.flags.isEmpty { return }
    if head.flags.contains(.metadata) {
      guard features.contains(.metadata) else { throw Violation(.flagNotAllowed, head) }
      guard head.length >= 2 else { throw Violation(.metadataTooLong, head) }
    }
    if head.flags.contains(.more) {
      guard features.contains(.fragments) else { throw Violation(.flagNotAllowed, head) }
      guard (1...Wire.fragmentLimit).contains(head.length) else {
        throw Violation(.sizeNotAllowed, head, value: UInt64(head.length))
      }
    }
  }

  private static func validateItem(
    _ head: FrameHead, _ features: Features, most: Int
  ) throws(Violation) {
    guard features.contains(.streams) else { throw Violation(.kindNotAgreed, head) }
    guard head.flags.isSubset(of: .more) else { throw Violation(.flagNotAllowed, head) }
    guard head.tag == 0 else { throw Violation(.tagNotAllowed, head, value: UInt64(head.tag)) }
    try validateLength(head, most: most)
    let least = head.flags.contains(.more) ? 1 : 0
    guard (least...Wire.fragmentLimit).contains(head.length) else {
      throw Violation(.sizeNotAllowed, head, value: UInt64(head.length))
    }
  }

  private static func validateControl(
    _ head: FrameHead, _ features: Features, _ sizes: ClosedRange<Int>, hasTag: Bool = false,
    otherwise rule: Violation.Rule = .sizeNotAllowed
  ) throws(Violation) {
    guard features.contains(FrameRule.features(head.kind)) else {
      throw Violation(.kindNotAgreed, head)
    }
    guard head.flags.isEmpty else { throw Violation(.flagNotAllowed, head) }
    guard hasTag ? head.tag <= Wire.codeMask : head.tag == 0 else {
      throw Violation(.tagNotAllowed, head, value: UInt64(head.tag))
    }
    guard sizes.contains(head.length) else {
      throw Violation(rule, head, value: UInt64(head.length))
    }
  }
}
