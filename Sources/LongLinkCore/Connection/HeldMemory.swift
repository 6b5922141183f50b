// SPDX-License-Identifier: Apache-2.0

/// The memory in bytes that a peer makes this side hold.
package struct HeldMemory: Equatable, Sendable {
  /// Memory that is freed when the connection ends.
  package var open = 0
  /// The unused part of `open`.
  package var room = 0
  /// Memory that is freed when the handlers of abandoned requests return.
  package var outlived = 0

  /// The used part of `open`.
  package var used: Int { open - room }

  package init(open: Int = 0, room: Int = 0, outlived: Int = 0) {
    self.open = open
    self.room = room
    self.outlived = outlived
  }

  /// The part that stays when the connection has ended.
  package var outlivedAlone: HeldMemory { HeldMemory(outlived: outlived) }

  /// Returns this memory plus `bytes`, if any, which are freed when the connection ends.
  package func adding(_ bytes: Int?) -> HeldMemory {
    HeldMemory(open: open + (bytes ?? 0), room: room, outlived: outlived)
  }

  /// The approximate memory of a request besides its body: its task and its state.
  package static let ofRequest = 4096

  /// Determines the memory that the peer makes a connection hold.
  init(of connection: borrowing Connection) {
    let handled = connection.inbound.handled * HeldMemory.ofRequest
    let messages = connection.assemblies.heldBytes + connection.inbound.bytes
    let streams = connection.streams.heldBytes + connection.streams.partialRoom
    open =
      connection.inbox.input.capacity + messages - connection.inbound.outlivedBytes
      + connection.outbox.heldBytes + streams + HeldMemory.tables(of: connection) + handled
      + (connection.greeting?.credential?.count ?? 0)
    room =
      connection.inbox.input.capacity - connection.inbox.input.count + connection.outbox.room
    outlived =
      connection.inbound.outlivedBytes + connection.inbound.outlived * HeldMemory.ofRequest
  }

  /// The memory of a connection's tables, if they are large.
  private static func tables(of connection: borrowing Connection) -> Int {
    let requests = connection.inbound.capacity
    let (messages, streams) = (connection.assemblies.slots, connection.streams.capacity)
    guard requests + messages + streams > 64 else { return 0 }
    return requests * 28 + messages * (MemoryLayout<Assembly>.stride + 4)
      + streams * (MemoryLayout<StreamState>.stride + 4)
  }
}
