// SPDX-License-Identifier: Apache-2.0

/// The tickets that servers have given a client. Each is used once (RFC 8446, C.4).
struct TLSTicketStore: Sendable {
  /// The most tickets of one server, and the most servers.
  static let mostTickets = 4
  static let mostServers = 64

  struct Ticket: Sendable {
    let session: [UInt8]
    /// When the server's certificate, or a revocation list, expires, in seconds since 1970.
    let expiry: Int64
  }

  private var tickets: [String: [Ticket]] = [:]
  /// The servers, the one that gave a ticket last at the end.
  private var order: [String] = []

  /// Adds a ticket; the oldest of the server, or of all, makes room for it.
  mutating func add(_ ticket: Ticket, for server: String) {
    order.removeAll { $0 == server }
    order.append(server)
    tickets[server, default: []].append(ticket)
    if tickets[server, default: []].count > Self.mostTickets { tickets[server]?.removeFirst() }
    if order.count > Self.mostServers { tickets[order.removeFirst()] = nil }
  }

  /// Takes the newest ticket of a server whose certificate, and whose lists, have not
  /// expired meanwhile.
  mutating func take(_ server: String, at now: Int64) -> Ticket? {
    guard let ticket = tickets[server]?.popLast() else { return nil }
    if tickets[server]?.isEmpty == true {
      tickets[server] = nil
      order.removeAll { $0 == server }
    }
    return ticket.expiry > now ? ticket : nil
  }
}
