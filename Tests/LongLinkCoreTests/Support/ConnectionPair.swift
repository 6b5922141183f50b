// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

/// How a stream cuts what it carries.
enum Cutting: Hashable, Sendable, CaseIterable {
  case whole
  case single
  case random

  func size(_ available: Int, _ dice: inout Seeded) -> Int {
    switch self {
    case .whole: available
    case .single: 1
    case .random: min(available, 1 + dice.below(dice.below(4) == 0 ? 100_000 : 40))
    }
  }
}

/// A client and a server whose streams are joined in memory.
final class ConnectionPair {
  let client: Side
  let server: Side
  var now = LinkInstant.start
  private let cutting: Cutting
  private var dice: Seeded
  private var clientHeardEnd = false
  private var serverHeardEnd = false

  init(
    client: ConnectionSettings = ConnectionSettings(.client),
    server: ConnectionSettings = ConnectionSettings(.server),
    cutting: Cutting = .whole, seed: UInt64 = 1, isGreeted: Bool = true
  ) {
    self.client = Side(client)
    self.server = Side(server)
    self.cutting = cutting
    dice = Seeded(seed)
    guard isGreeted else { return }
    exchange()
    _ = self.client.takeEvents()
    _ = self.server.takeEvents()
  }

  /// Moves bytes both ways until none is left.
  func exchange() {
    repeat {
      client.flush()
      server.flush()
    } while move()
  }

  /// One step of each direction; false when nothing was left to move.
  func move() -> Bool {
    let isToServer = deliver(from: client, to: server, &serverHeardEnd)
    let isToClient = deliver(from: server, to: client, &clientHeardEnd)
    return isToServer || isToClient
  }

  private func deliver(from: Side, to: Side, _ heardEnd: inout Bool) -> Bool {
    guard !to.connection.isClosed, !to.connection.holdsReading else { return false }
    if !from.wire.isEmpty {
      // Taken out at once, handed over in pieces: a front that is removed bytewise costs the
      // square.
      let wire = from.takeWire()
      var offset = 0
      while offset < wire.count, !to.connection.isClosed, !to.connection.holdsReading {
        let size = cutting.size(wire.count - offset, &dice)
        to.receive(Array(wire[offset..<offset + size]))
        offset += size
      }
      from.wire = Array(wire[offset...])
      return true
    }
    guard from.hasEnded, !heardEnd else { return false }
    heardEnd = true
    to.receiveEnd()
    return true
  }

  /// Lets time pass on both sides, timer by timer.
  func pass(_ milliseconds: Int64) {
    let target = now + milliseconds * 1_000_000
    while min(client.connection.deadline, server.connection.deadline) <= target {
      now = max(now, min(client.connection.deadline, server.connection.deadline))
      client.elapse(to: now)
      server.elapse(to: now)
      exchange()
    }
    now = target
    client.elapse(to: now)
    server.elapse(to: now)
    exchange()
  }
}

/// A connection beyond its greeting, alone: the test plays its peer.
func opened(
  _ role: Role, features: Features = .supported.subtracting(.once), at now: LinkInstant = .start,
  _ change: (inout ConnectionSettings) -> Void = { _ in }
) -> Side {
  let side = Side(
    ConnectionSettings(role) {
      if features.contains(.renewal) { $0.credential = [1] }
      change(&$0)
    }, at: now)
  switch role {
  case .client:
    let body: [UInt8] = features.isEmpty ? [] : [0x10, UInt8(features.rawValue)]
    side.receive(RawFrame(.welcome, serial: 3, body: body))
  case .server:
    let body: [UInt8] = features.isEmpty ? [] : [0x10, UInt8(features.rawValue)]
    side.receive(RawFrame(.hello, serial: 3, body: body))
  }
  _ = side.takeFrames()
  _ = side.takeEvents()
  return side
}
