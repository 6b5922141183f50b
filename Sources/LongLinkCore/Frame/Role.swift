// SPDX-License-Identifier: Apache-2.0

/// The role of one side of a connection.
package enum Role: Equatable, Sendable {
  case client
  case server

  /// Whether a serial belongs to this side's requests.
  @inline(__always)
  package func owns(_ serial: UInt32) -> Bool {
    (serial & Wire.serverBit != 0) == (self == .server)
      && serial & ~Wire.serverBit >= Wire.firstSerial
  }

  /// The serials of this side's requests.
  package var serials: ClosedRange<UInt32> {
    switch self {
    case .client: Wire.firstSerial...(Wire.serverBit - 1)
    case .server: (Wire.serverBit | Wire.firstSerial)...UInt32.max
    }
  }

  package var peer: Role {
    self == .client ? .server : .client
  }
}
