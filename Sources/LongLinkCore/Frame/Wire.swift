// SPDX-License-Identifier: Apache-2.0

/// The constants of wire version 1; `Protocols/wire.md` defines them.
package enum Wire {
  /// The version of the protocol that this code speaks.
  package static let version: UInt32 = 1
  /// The largest body of one fragment, in bytes.
  package static let fragmentLimit = 65_536
  /// The most credit, in bytes, that one side can have at a time.
  package static let mostCredit = Int(Int32.max)
  /// The credit from which on a sender sends a part of its item, in bytes.
  package static let leastCredit = 1_024
  /// What a frame of an item costs besides its length, in bytes of credit.
  package static let itemOverhead = 16
  /// The largest body of a hello, welcome or goaway, in bytes.
  package static let controlLimit = 65_536
  /// The largest metadata block, in bytes: the largest value of its 16-bit count.
  package static let metadataLimit = 65_535
  /// The largest body of a ping, in bytes.
  package static let pingLimit = 64
  /// The most pings that a peer may send in `pingWindow`.
  package static let pingsPerWindow = 100
  /// The window in which pings are counted, in nanoseconds.
  package static let pingWindow: Int64 = 10_000_000_000
  /// How often the server of a short link sends a ping while it has nothing else to send, in
  /// nanoseconds.
  package static let shortPingInterval: Int64 = 15_000_000_000
  /// How long a closing side continues to read and discard, in nanoseconds.
  package static let lingerTime: Int64 = 1_000_000_000
  /// How long a client reads on from a connection that it has left, in nanoseconds.
  package static let leavingTime: Int64 = 10_000_000_000
  /// The most bytes that are kept of a peer's name.
  package static let nameLimit = 1_024
  /// The longest credential of a configuration, in bytes, so that it fits into a hello.
  package static let credentialLimit = 60_000
  /// The least time between two renewals that a server decides about, and from a welcome or an
  /// answer to a client's next renewal, in nanoseconds.
  package static let renewalRest: Int64 = 1_000_000_000
  /// The longest key of a request that runs once, in bytes.
  package static let onceKeyLimit = 255
  /// The most alternative servers that are read from a goaway.
  package static let alternativesLimit = 8

  package static let plainPushSerial: UInt32 = 1
  package static let handshakeSerial: UInt32 = 3
  package static let goawaySerial: UInt32 = 4
  /// The first serial that is not reserved.
  package static let firstSerial: UInt32 = 50
  /// Set in the serials of a server's requests.
  package static let serverBit: UInt32 = 0x8000_0000
  /// Set in the tag of a response if no handler was called.
  package static let refusedBit: UInt32 = 0x80_0000
  /// The code within a response's tag.
  package static let codeMask: UInt32 = 0x7F_FFFF
  package static let tagMask: UInt32 = 0xFF_FFFF

  /// The values that absent fields of hello or welcome stand for.
  package static let defaultBody: UInt32 = 16_777_216
  package static let defaultInFlight: UInt32 = 1_024
  package static let defaultInterval: UInt32 = 30_000
  package static let defaultTimeout: UInt32 = 10_000
  package static let defaultCredit: UInt32 = 65_536
  /// The shortest heartbeat interval that a server accepts, in milliseconds.
  package static let shortestInterval: UInt32 = 200
  package static let shortestTimeout: UInt32 = 100
}
