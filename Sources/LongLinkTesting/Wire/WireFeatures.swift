// SPDX-License-Identifier: Apache-2.0

/// The optional features of the protocol, as named in a hello or a welcome.
public struct WireFeatures: OptionSet, Hashable, Sendable {
  /// The bits on the wire.
  public let rawValue: UInt64

  /// Makes a set from the bits on the wire.
  public init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// Requests, responses and pushes may carry metadata.
  public static let metadata = WireFeatures(rawValue: 1)
  /// Large bodies may be sent in fragments.
  public static let fragments = WireFeatures(rawValue: 2)
  /// Requests may carry items in either direction. Needs `metadata` and `fragments`.
  public static let streams = WireFeatures(rawValue: 4)
  /// The client may renew its credential on the connection.
  public static let renewal = WireFeatures(rawValue: 8)
  /// Requests of the client may run once: the server keeps the answers under keys. Needs
  /// `metadata`.
  public static let once = WireFeatures(rawValue: 16)
}
