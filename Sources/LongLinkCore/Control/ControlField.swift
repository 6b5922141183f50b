// SPDX-License-Identifier: Apache-2.0

/// A field of a control message, as `Protocols/control.proto` describes it.
package struct ControlField: Equatable, Sendable {
  package enum Kind: String, Sendable {
    case number, text, bytes
    /// A message with a key and a value.
    case entry
  }

  package let number: UInt32
  package let name: String
  package let kind: Kind
  /// The size of the field in bytes; nil if it varies. A field without bytes counts as absent.
  package let size: Int?

  package init(_ number: UInt32, _ name: String, _ kind: Kind = .number, size: Int? = nil) {
    self.size = size
    self.number = number
    self.name = name
    self.kind = kind
  }
}

extension Hello {
  package static let fields = [
    ControlField(1, "version"), ControlField(2, "features"), ControlField(3, "max_body"),
    ControlField(4, "max_in_flight"), ControlField(5, "heartbeat_interval"),
    ControlField(6, "heartbeat_timeout"), ControlField(7, "credential", .bytes),
    ControlField(8, "name", .text), ControlField(11, "stream_credit"),
    ControlField(12, "client_id", .bytes, size: ClientID.size),
  ]
}

extension Welcome {
  package static let fields = [
    ControlField(1, "version"), ControlField(2, "features"), ControlField(3, "max_body"),
    ControlField(4, "max_in_flight"), ControlField(5, "heartbeat_interval"),
    ControlField(6, "heartbeat_timeout"), ControlField(9, "name", .text),
    ControlField(10, "stream_credit"), ControlField(11, "credential_expires"),
    ControlField(12, "key_space", .bytes, size: KeySpace.size),
    ControlField(13, "key_retention"), ControlField(14, "key_time"),
  ]
}

extension GoAway {
  package static let fields = [
    ControlField(1, "code"), ControlField(2, "reason", .text),
    ControlField(3, "requests_accepted"), ControlField(4, "spread"),
    ControlField(5, "retry_after"), ControlField(6, "alternatives", .text),
  ]
}

extension Metadata {
  package static let fields = [
    ControlField(1, "remaining"), ControlField(2, "priority"),
    ControlField(3, "idempotency_key", .bytes), ControlField(4, "entries", .entry),
    ControlField(5, "retry_after"), ControlField(6, "credit"), ControlField(7, "items"),
    ControlField(8, "interrupted"),
    ControlField(9, "key_space", .bytes, size: KeySpace.size),
    ControlField(10, "key_time"), ControlField(11, "replayed"),
  ]
}
