// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension FrameDialect {
  /// The largest body that a dialect can allow, in bytes.
  static let largestBody = 1 << 30

  func validate() throws(FrameLayoutError) {
    guard FrameLayout.isName(name) else { throw FrameLayoutError("name", FrameLayout.nameRule) }
    try validateSerials()
    try validateHeartbeat()
    try validateTypes()
    try validateCodes()
    try validateBody()
    for role in [Role.client, .server] { try validateClaims(from: role) }
  }

  private func width(_ role: Role, _ meaning: FrameLayout.Field.Meaning) -> Int? {
    layout.shape(from: role).field { $0 == meaning }?.width
  }

  private func fits(_ value: UInt32, _ width: Int) -> Bool {
    width >= 4 || value >> UInt32(8 * width) == 0
  }

  /// Checks that a serial fits into the frames of both sides, because a response repeats it.
  private func checkSerial(_ value: UInt32, _ part: String) throws(FrameLayoutError) {
    for role in [Role.client, .server] {
      guard let width = width(role, .serial), fits(value, width) else {
        throw FrameLayoutError(part, "\(value) does not fit into the serial field")
      }
    }
  }

  private func checkType(
    _ value: UInt32, from role: Role, _ part: String
  ) throws(FrameLayoutError) {
    guard let width = width(role, .type) else { return }
    guard fits(value, width) else {
      throw FrameLayoutError(part, "\(value) does not fit into the type field")
    }
  }

  private func validateSerials() throws(FrameLayoutError) {
    for (part, range) in [("serials.client", serials.client), ("serials.server", serials.server)] {
      guard let range else { continue }
      guard range.lowerBound > 0 else {
        throw FrameLayoutError(part, "0 cannot be the serial of a request")
      }
      guard range.count > 1 else {
        throw FrameLayoutError(part, "one serial is not enough for concurrent requests")
      }
      try checkSerial(range.upperBound, part)
    }
    if let server = serials.server, server.overlaps(serials.client) {
      throw FrameLayoutError(
        "serials.server", "they overlap with the client's, so the requester would be ambiguous")
    }
    if serials.server != nil, width(.server, .type) == nil {
      throw FrameLayoutError(
        "serials.server", "the response shape has no type, which a server's requests need")
    }
    try checkSerial(pushes.serial, "pushes.serial")
  }

  private func validateHeartbeat() throws(FrameLayoutError) {
    let day = Duration.seconds(86_400)
    guard (.milliseconds(200)...day).contains(heartbeat.interval) else {
      throw FrameLayoutError("heartbeat.interval", "it must be 200 ms to a day")
    }
    guard (.milliseconds(100)...day).contains(heartbeat.timeout) else {
      throw FrameLayoutError("heartbeat.timeout", "it must be 100 ms to a day")
    }
    for (part, time) in [("interval", heartbeat.interval), ("timeout", heartbeat.timeout)] {
      guard time == .milliseconds(time.wholeMilliseconds) else {
        throw FrameLayoutError("heartbeat.\(part)", "it is not a whole number of milliseconds")
      }
    }
    for role in [Role.client, .server] {
      guard let ping = heartbeat[role] else { continue }
      let part = role == .client ? "heartbeat.client" : "heartbeat.server"
      try checkType(ping.type, from: role, "\(part).type")
      if let answer = ping.answer { try checkType(answer, from: role.peer, "\(part).answer") }
      try checkSerial(ping.serials.upperBound, "\(part).serials")
    }
    if unknownSerial == .heartbeat, heartbeat.server?.answer == nil {
      throw FrameLayoutError(
        "unknownSerial", "it cannot be a heartbeat, because a server's ping has no answer")
    }
  }

  private func validateTypes() throws(FrameLayoutError) {
    let hasType = width(.server, .type) != nil
    guard hasType == (responseType != .absent) else {
      let reason =
        hasType ? "the response shape has a type" : "the response shape has no type to hold it"
      throw FrameLayoutError("responseType", reason)
    }
    if case .fixed(let type) = responseType {
      for role in [Role.client, .server] where serials[role.peer] != nil {
        try checkType(type, from: role, "responseType")
      }
    }
    for role in [Role.client, .server] {
      let part = role == .client ? "pushes.fromClient" : "pushes.fromServer"
      for range in pushes[role] {
        guard width(role, .type) != nil else {
          throw FrameLayoutError(part, "frames in this direction have no type, which pushes need")
        }
        guard range.upperBound <= Wire.tagMask else {
          throw FrameLayoutError(part, "\(range.upperBound) exceeds the largest message type")
        }
        try checkType(range.upperBound, from: role, part)
      }
    }
    try validateCancel()
  }

  private func validateCancel() throws(FrameLayoutError) {
    guard let cancel else { return }
    for role in [Role.client, .server] where maySendRequests(role) {
      try checkType(cancel.type, from: role, "cancel.type")
      guard let serial = width(role, .serial), let type = width(role, .type) else {
        throw FrameLayoutError(
          "cancel.type", "frames in this direction have no type, which cancels need")
      }
      if cancel.target == .body {
        try validateCancelBody(serial)
      }
      if cancel.target == .type, serial < min(type, 3) {
        throw FrameLayoutError("cancel.target", "the serial field is too narrow for a type")
      }
    }
  }

  private func validateCancelBody(_ width: Int) throws(FrameLayoutError) {
    guard width <= maximumBody else {
      throw FrameLayoutError("cancel.target", "no body is large enough for a serial")
    }
    guard layout.delimiter?.inside != .refused else {
      throw FrameLayoutError(
        "cancel.target", "a serial in the body could contain the delimiter, which is refused there")
    }
  }

  private func validateCodes() throws(FrameLayoutError) {
    let widths = [Role.client, .server].compactMap { width($0, .code) }
    guard let codes else {
      guard widths.isEmpty else {
        throw FrameLayoutError("codes", "the layout has a code, but no code is given for success")
      }
      return
    }
    guard let width = widths.min() else {
      throw FrameLayoutError("codes", "the layout has no code field")
    }
    guard !codes.success.isEmpty else {
      throw FrameLayoutError("codes.success", "it must not be empty")
    }
    var seen: Set<UInt32> = []
    for (index, code) in codes.success.enumerated() {
      try check(code, width, &seen, "codes.success[\(index)]")
    }
    guard !seen.contains(codes.failure), fits(codes.failure, width) else {
      throw FrameLayoutError(
        "codes.failure", "\(codes.failure) means success, or does not fit into the code field")
    }
    for (index, entry) in codes.errors.enumerated() {
      let part = "codes.errors[\(index)]"
      try check(entry.code, width, &seen, part)
      guard entry.meaning != .ok, entry.native != nil || entry.code <= Wire.codeMask else {
        throw FrameLayoutError(
          part, "\(entry.code) is no error code of the library: add a native code")
      }
    }
  }

  private func check(
    _ code: UInt32, _ width: Int, _ seen: inout Set<UInt32>, _ part: String
  ) throws(FrameLayoutError) {
    guard fits(code, width) else {
      throw FrameLayoutError(part, "\(code) does not fit into the code field")
    }
    guard seen.insert(code).inserted else {
      throw FrameLayoutError(part, "\(code) already has a meaning")
    }
  }

  private func validateBody() throws(FrameLayoutError) {
    guard (1...Self.largestBody).contains(maximumBody) else {
      throw FrameLayoutError("maximumBody", "it must be 1 to \(Self.largestBody) bytes")
    }
    for role in [Role.client, .server] {
      let plan = FramePlan(layout, from: role)
      guard let length = plan.length else { continue }
      let largest = UInt64(maximumBody + plan.lengthBias)
      guard length.width == 8 || largest >> UInt64(8 * length.width) == 0 else {
        let name = role == .client ? "request" : "response"
        throw FrameLayoutError(
          "maximumBody",
          "\(maximumBody) bytes of body need a length of more than the "
            + "\(length.width) bytes that the \(name) shape has")
      }
    }
  }

  private func validateClaims(from role: Role) throws(FrameLayoutError) {
    let claims = claims(from: role)
    for (index, later) in claims.enumerated() {
      for earlier in claims[..<index] where earlier.claim.overlaps(later.claim) {
        let sender = role == .client ? "client" : "server"
        throw FrameLayoutError(
          later.part,
          "a frame from the \(sender) could be \(later.claim.name), or "
            + "\(earlier.claim.name) according to \(earlier.part)")
      }
    }
  }
}
