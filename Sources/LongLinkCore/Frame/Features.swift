// SPDX-License-Identifier: Apache-2.0

/// Optional features, used only if both hello and welcome name them.
@usableFromInline package struct Features: OptionSet, Hashable, Sendable {
  /// The bits on the wire.
  @usableFromInline package let rawValue: UInt64

  /// Makes a set from the bits on the wire.
  @usableFromInline package init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// Requests, responses and pushes may carry metadata.
  package static let metadata = Features(rawValue: 1)
  /// Large bodies may be sent in fragments.
  package static let fragments = Features(rawValue: 2)
  /// Requests may carry items in either direction. Needs `metadata` and `fragments`.
  package static let streams = Features(rawValue: 4)

  /// Replaces `OptionSet`'s version, which is not specialised in other modules. Runs per message.
  @inlinable package func contains(_ other: Features) -> Bool {
    rawValue & other.rawValue == other.rawValue
  }

  /// A client's credential can be renewed on the connection.
  package static let renewal = Features(rawValue: 8)

  /// Requests of the client may run once, under keys. Needs `metadata`.
  package static let once = Features(rawValue: 16)

  /// The features that this version of the library supports.
  package static let supported: Features = [.metadata, .fragments, .streams, .renewal, .once]

  /// The set without the features that need one that is missing.
  package var withNeeds: Features {
    guard contains(.metadata) else { return subtracting([.streams, .once]) }
    return contains(.fragments) ? self : subtracting(.streams)
  }
}
