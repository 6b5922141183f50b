// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// The rules that determine the kind of each frame of one side, by its type and serial.
struct DialectRules: Equatable, Sendable {
  private struct Match: Equatable, Sendable {
    let type: UInt32
    let serials: ClosedRange<UInt32>

    func holds(_ type: UInt64?, _ serial: UInt64) -> Bool {
      serials.contains(UInt32(clamping: serial)) && serial <= UInt64(UInt32.max)
        && (type == nil || type == UInt64(self.type))
    }
  }

  private let ping: Match?
  private let pong: Match?
  private let cancel: UInt32?
  private let target: FrameDialect.Cancel.Target?
  private let pushes: [ClosedRange<UInt32>]
  /// The serials of the side's own requests, and of the requests that it answers.
  private let requests: ClosedRange<UInt32>?
  private let responses: ClosedRange<UInt32>?
  private let responseType: FrameDialect.ResponseType
  private let unknownSerial: FrameDialect.UnknownSerial
  private let canBePing: Bool

  init(_ dialect: FrameDialect, from role: Role) {
    ping = dialect.heartbeat[role].map { Match(type: $0.type, serials: $0.serials) }
    pong = dialect.heartbeat[role.peer].flatMap { ping in
      ping.answer.map { Match(type: $0, serials: ping.serials) }
    }
    let mayCancel = dialect.maySendRequests(role)
    cancel = mayCancel ? dialect.cancel?.type : nil
    target = mayCancel ? dialect.cancel?.target : nil
    pushes = dialect.pushes[role]
    requests = dialect.serials[role]
    responses = dialect.serials[role.peer]
    responseType = dialect.responseType
    unknownSerial = dialect.unknownSerial
    canBePing = role == .server
  }

  /// Returns the kind of a frame; `type` is nil if the layout has no type.
  func kind(type: UInt64?, serial: UInt64) throws(Violation) -> FrameKind {
    if let ping, ping.holds(type, serial) { return .ping }
    if let pong, pong.holds(type, serial) { return .pong }
    if let type {
      if let cancel, type == UInt64(cancel) {
        try validateCancel(serial)
        return .cancel
      }
      if type <= UInt64(Wire.tagMask) {
        let narrow = UInt32(type)
        for range in pushes where range.contains(narrow) { return .push }
      }
    }
    let narrow = UInt32(exactly: serial)
    if let requests, let narrow, requests.contains(narrow) {
      guard let type, type <= UInt64(Wire.tagMask) else {
        throw Violation(
          .typeNotAllowed, kind: FrameKind.request.rawValue, serial: narrow, value: type)
      }
      return .request
    }
    guard let responses else {
      throw Violation(.serialOutOfRange, serial: UInt32(exactly: serial), value: serial)
    }
    if let narrow, responses.contains(narrow) {
      try validateResponse(type, narrow)
      return .response
    }
    return try kindOfUnknown(serial)
  }

  private func validateCancel(_ serial: UInt64) throws(Violation) {
    let isGood =
      switch target {
      case .serial: requests!.contains(UInt32(clamping: serial))
      case .type: serial <= UInt64(Wire.tagMask)
      case .body, nil: true
      }
    guard isGood else {
      throw Violation(
        .serialOutOfRange, kind: FrameKind.cancel.rawValue, serial: UInt32(exactly: serial),
        value: serial)
    }
  }

  private func validateResponse(_ type: UInt64?, _ serial: UInt32) throws(Violation) {
    let isGood =
      switch (responseType, type) {
      case (.echo, let type?): type <= UInt64(Wire.tagMask)
      case (.offset(let offset), let type?):
        type >= UInt64(offset) && type - UInt64(offset) <= UInt64(Wire.tagMask)
      case (.fixed(let fixed), let type?): type == UInt64(fixed)
      case (.absent, _), (_, nil): true
      }
    guard isGood else {
      var only: UInt64?
      if case .fixed(let fixed) = responseType { only = UInt64(fixed) }
      throw Violation(
        .typeNotAllowed, kind: FrameKind.response.rawValue, serial: serial, value: type,
        expected: only)
    }
  }

  private func kindOfUnknown(_ serial: UInt64) throws(Violation) -> FrameKind {
    switch unknownSerial {
    case .drop:
      return .response
    case .heartbeat where canBePing && serial <= UInt64(UInt32.max):
      return .ping
    case .heartbeat, .violation:
      throw Violation(
        .serialOutOfRange, kind: FrameKind.response.rawValue, serial: UInt32(exactly: serial),
        value: serial)
    }
  }
}
