// SPDX-License-Identifier: Apache-2.0

/// What memory of a connection waits for the peer, and what can be freed.
extension HeldMemory {
  /// The bytes that wait for the peer: to send the rest of messages, or to read output.
  package static func unfinished(of connection: borrowing Connection) -> Int {
    connection.inbox.input.count + connection.assemblies.capacity
      + connection.outbox.heldBytes + connection.streams.partialRoom
  }

  /// Frees memory that an ending connection does not need.
  package static func releaseInput(of connection: inout Connection) {
    connection.inbox.releaseStorage()
    if connection.isClosed {
      connection.outbox.releaseAll()
    } else {
      connection.outbox.releaseRoom()
    }
  }

  /// Frees unused memory of a connection, because other connections need it.
  package static func releaseRoom(of connection: inout Connection) {
    connection.inbox.input.releaseRoom()
    if connection.outbox.isEmpty {
      connection.outbox.releaseStorage()
    } else {
      connection.outbox.releaseRoom()
    }
    releaseTables(of: &connection)
  }

  /// Frees memory that an idle connection does not need.
  package static func releaseStorage(of connection: inout Connection) {
    connection.inbox.releaseStorage()
    connection.outbox.releaseStorage()
    connection.framing.releaseStorage()
    releaseTables(of: &connection)
  }

  private static func releaseTables(of connection: inout Connection) {
    connection.inbound.releaseStorage()
    connection.assemblies.releaseStorage()
    connection.streams.releaseStorage()
  }
}
