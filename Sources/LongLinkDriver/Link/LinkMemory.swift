// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// What a link takes of its server's memory budget; nothing on a client.
struct LinkMemory {
  private var account = MemoryAccount()

  private static let fewRequests = 4
  /// A message of 64 KiB in a buffer that doubled to hold it, and four requests.
  private static let smallBytes = 2 * 65_536 + 4 * Connection.requestOverhead

  /// Reports to the budget what the connection holds now, and has read and written so far.
  mutating func report(
    _ held: HeldMemory, to share: MemoryShare, at now: @autoclosure () -> LinkInstant,
    moved: @autoclosure () -> UInt64
  ) {
    if let more = account.change(to: held, at: now(), moved: moved()) { share.add(more) }
  }

  /// How much the connection is to blame where memory is short; `unfinished` is what waits for the
  /// peer, and `decoded` what the bodies of its requests take.
  func weight(
    at now: LinkInstant, unfinished: Int, decoded: Int, longest: Int64
  ) -> MemoryAccount.Weight {
    account.weight(at: now, unfinished: unfinished, decoded: decoded, longest: longest)
  }

  /// Whether the connection contributes little to what the server holds.
  func isSmall(_ requests: borrowing InboundTable, decoded: Int) -> Bool {
    LinkMemory.areFew(requests) && account.told.open + decoded <= LinkMemory.smallBytes
  }

  static func areFew(_ requests: borrowing InboundTable) -> Bool {
    requests.outlived == 0 && requests.count <= fewRequests
  }
}
