// SPDX-License-Identifier: Apache-2.0

/// The tickets that servers have given a client. Each is used once (RFC 8446, C.4).
struct TLSTicketStore: Sendable {
  /// The most tickets for one server, and the most servers.
  static let mostTickets = 4
  static let mostServers = 64

  struct Ticket: Sendable {
    let session: [UInt8]
    /// When the server's certificate, or a revocation list, expires, in seconds since 1970.
    let expiry: Int64
  }

  private var tickets: [String: [Ticket]] = [:]
  /// The servers; the last one gave a ticket most recently.
  private var order: [String] = []

  /// Adds a ticket. Beyond a limit, it replaces the server's oldest ticket, or all tickets of the
  /// server that gave none for the longest time.
  mutating func add(_ ticket: Ticket, for server: String) {
    order.removeAll { $0 == server }
    order.append(server)
    tickets[server, default: []].append(ticket)
    if tickets[server, default: []].count > Self.mostTickets { tickets[server]?.removeFirst() }
    if order.count > Self.mostServers { tickets[order.removeFirst()] = nil }
  }

  /// Takes the newest ticket of a server; nil if there is none, or if it has expired at `now`, in
  /// seconds since 1970.
  mutating func take(_ server: String, at now: Int64) -> Ticket? {
    guard let ticket = tickets[server]?.popLast() else { return nil }
    if tickets[server]?.isEmpty == true {
      tickets[server] = nil
      order.removeAll { $0 == server }
    }
    return ticket.expiry > now ? ticket : nil
  }
}
