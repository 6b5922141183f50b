// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// A link's access to the memory budget of its server. A client has no budget.
///
/// It never changes, so that a request can ask it without retaining anything.
package struct LinkMemory {
  /// The loop's share of the budget, which every request checks; nil on a client.
  let share: MemoryShare?
  /// Counts the memory that decoded request bodies take; nil on a client.
  package let decoded: DecodedMemory?

  private static let fewRequests = 4
  /// The most bytes of a small connection: a doubled buffer for 64 KiB, and four requests.
  private static let smallBytes = 2 * 65_536 + 4 * HeldMemory.ofRequest

  init(in share: MemoryShare?) {
    self.share = share
    decoded = share.map { DecodedMemory(in: $0) }
  }

  /// Whether the connection contributes little to what the server holds.
  func isSmall(_ requests: borrowing InboundTable, counted: Int) -> Bool {
    LinkMemory.areFew(requests) && counted + (decoded?.bytes ?? 0) <= LinkMemory.smallBytes
  }

  /// Whether the server has room for one more request; true without a budget.
  @inline(__always)
  var hasRoom: Bool { share?.hasRoom ?? true }

  /// Whether the server has room for one more request of a connection with these requests. The
  /// reserve counts where such a connection may use it.
  @inline(__always)
  func hasRoom(for requests: borrowing InboundTable) -> Bool {
    hasRoom || hasReserve(for: requests)
  }

  /// Whether a connection with these requests must not be read, because memory is short; false
  /// without a budget.
  func isShort(for requests: borrowing InboundTable) -> Bool {
    guard let budget = share?.budget else { return false }
    return budget.mustEvict || !hasRoom(for: requests)
  }

  /// Whether the reserve has room for another of these requests: they have to be few, and none may
  /// have outlived its deadline or cancel. So peers that leave many behind cannot use it up.
  func hasReserve(for requests: borrowing InboundTable) -> Bool {
    guard let budget = share?.budget, budget.hasReserve else { return false }
    return LinkMemory.areFew(requests)
  }

  private static func areFew(_ requests: borrowing InboundTable) -> Bool {
    requests.outlived == 0 && requests.count <= fewRequests
  }
}
