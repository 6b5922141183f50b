// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkTesting

/// The message types of the soak's servers.
enum SoakType {
  static let echo: MessageType = 1
  static let slow: MessageType = 2
  static let reject: MessageType = 3
  static let push: MessageType = 4
  /// A broadcast of a server.
  static let news: MessageType = 5
  /// A stream of numbers.
  static let watch: MessageType = 6
  /// Two ways to pay: see `SoakPayments`.
  static let charge: MessageType = 7
  static let transfer: MessageType = 8
  static let nobody: MessageType = 99

  /// The code of the responses to `reject`.
  static let rejection: ResponseCode = 1234
  /// The code with which a stream ends when the client's credential has expired.
  static let expired: ResponseCode = 1235
  /// The text with which a stream ends when its handler was told that the server drains.
  static let told = "told of the drain"
}

/// The kinds of requests in a soak.
enum SoakKind: UInt8, CaseIterable, Sendable {
  case small = 1
  case large
  case slow
  /// Its caller cancels it soon after.
  case cancelled
  /// Its deadline may pass before its response comes.
  case hurried
  /// Its handler rejects it.
  case rejected
  /// Its message type has no handler.
  case unknown
  /// A one-way message: its sender does not learn what became of it.
  case push
  /// Retried after its connection was lost, so that it may run more than once.
  case idempotent
  /// It runs once, and the server keeps its answer after its effect.
  case charge
  /// It runs once, and its effect and its record are in one transaction.
  case transfer

  /// The percentage of requests that are of this kind.
  private var share: Int {
    switch self {
    case .small: 28
    case .large: 8
    case .slow: 14
    case .cancelled: 8
    case .hurried: 6
    case .rejected: 6
    case .unknown: 2
    case .push: 10
    case .idempotent: 10
    case .charge: 4
    case .transfer: 4
    }
  }

  static func draw(using generator: inout SeededGenerator) -> SoakKind {
    var rest = Int.random(in: 0..<100, using: &generator)
    for kind in allCases {
      rest -= kind.share
      if rest < 0 { return kind }
    }
    return .small
  }

  var type: MessageType {
    switch self {
    case .small, .large, .idempotent: SoakType.echo
    case .slow, .cancelled, .hurried: SoakType.slow
    case .rejected: SoakType.reject
    case .unknown: SoakType.nobody
    case .push: SoakType.push
    case .charge: SoakType.charge
    case .transfer: SoakType.transfer
    }
  }

  var isPayment: Bool { self == .charge || self == .transfer }

  /// A body: the key, the handler's time in milliseconds, and padding.
  func body(key: UInt64, using generator: inout SeededGenerator) -> [UInt8] {
    let takesTime = type == SoakType.slow || isPayment
    let time: UInt8 = takesTime ? .random(in: 20...250, using: &generator) : 0
    let length =
      self == .large ? Int.random(in: 40_000...200_000, using: &generator) : 64
    return SoakRecord.bytes(of: key) + [time]
      + [UInt8](repeating: UInt8(truncatingIfNeeded: key), count: length)
  }

  func options(key: UInt64, using generator: inout SeededGenerator) -> RequestOptions {
    var options = RequestOptions(idempotencyKey: SoakRecord.bytes(of: key))
    options.priority = .random(in: 0...3, using: &generator)
    options.waitsForConnection = Bool.random(using: &generator)
    if self == .hurried {
      options.timeout = .milliseconds(Int.random(in: 10...200, using: &generator))
    }
    if self == .idempotent { options.retry = .idempotent }
    if isPayment { options.retry = .once }
    return options
  }
}
