// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import Synchronization

/// The memory of one connection's decoded bodies, as part of the server's budget.
///
/// Handlers decode on any thread, so this is counted apart from what the connection holds on its
/// loop. Once the connection has ended, the memory counts as that of abandoned requests.
package final class DecodedMemory: DecodingAccount {
  private struct State {
    var bytes = 0
    var hasEnded = false
  }

  private let share: MemoryShare
  private let state = Mutex(State())

  /// A decoded body of at most this many bytes may use the reserve for connections with few
  /// requests.
  private static let little = 65_536

  init(in share: MemoryShare) {
    self.share = share
  }

  /// The bytes of decoded bodies that count as the connection's; 0 once the connection has ended.
  var bytes: Int { state.withLock { $0.hasEnded ? 0 : $0.bytes } }

  package func take(_ count: Int, besides counted: Int) -> Bool {
    share.budget.addDecoded(count, isLittle: counted + count <= DecodedMemory.little) {
      add(count)
    }
  }

  package func most(besides size: Int) -> Int { max(0, share.budget.mostDecoded - size) }

  package func giveBack(_ count: Int) { add(-count) }

  package var refusal: String {
    """
    the server's limits.memoryLimit of \(share.budget.limit) bytes has no room for the decoded \
    body
    """
  }

  private func add(_ count: Int) {
    state.withLock { state in
      state.bytes += count
      share.add(state.hasEnded ? HeldMemory(outlived: count) : HeldMemory(open: count))
    }
  }

  /// Ends the account with its connection. What its handlers still hold is freed when they return.
  func connectionEnds() {
    state.withLock { state in
      guard !state.hasEnded else { return }
      state.hasEnded = true
      if state.bytes > 0 { share.add(HeldMemory(open: -state.bytes, outlived: state.bytes)) }
    }
  }
}

/// A decoded body's share of an account. Releasing the lease, on any thread, gives the memory back.
package final class DecodedLease: Sendable {
  private let taken: (bytes: Int, account: any DecodingAccount)

  private init(_ taken: (bytes: Int, account: any DecodingAccount)) {
    self.taken = taken
  }

  deinit { taken.account.giveBack(taken.bytes) }

  /// Decodes a body. Its memory counts as long as `lease` lives, which stays nil for a small body.
  static func decode<Message: BodyDecodable>(
    _ type: Message.Type, from bytes: [UInt8], in account: consuming DecodedMemory?,
    lease: inout DecodedLease?
  ) throws(BodyError) -> Message {
    var memory = DecodingMemory(for: type, account: account, besides: bytes.count)
    // Most bodies fit into the memory that needs no lease.
    defer {
      if memory.counted > 0, let taken = memory.settle() { lease = DecodedLease(taken) }
    }
    return try Message(copying: bytes, charging: &memory)
  }
}

/// Holds the memory of the decoded item that a handler has read last, until `release` is called.
final class ItemMemory: Sendable {
  private let account: DecodedMemory
  private let lease = Mutex<DecodedLease?>(nil)

  init(in account: DecodedMemory) {
    self.account = account
  }

  /// Decodes an item. Call `release` for the previous item first.
  func decode<Item: BodyDecodable>(
    _ type: Item.Type, from bytes: [UInt8]
  ) throws(BodyError) -> Item {
    var taken: DecodedLease?
    let item = try DecodedLease.decode(type, from: bytes, in: account, lease: &taken)
    if let taken { lease.withLock { $0 = taken } }
    return item
  }

  func release() { lease.withLock { $0 = nil } }
}
