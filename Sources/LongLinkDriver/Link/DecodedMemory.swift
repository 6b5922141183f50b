// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import Synchronization

/// The memory of the decoded bodies of one connection, in its server's budget.
///
/// Handlers decode on any thread, so it is counted apart from what the connection holds on its
/// loop. It counts as the connection's while that lives, and then as that of abandoned requests.
package final class DecodedMemory: DecodingAccount {
  private struct State {
    var bytes = 0
    var hasEnded = false
  }

  private let share: MemoryShare
  private let state = Mutex(State())

  /// Decoding so little may use the reserve, like the requests of connections with few of them.
  private static let little = 65_536

  init(in share: MemoryShare) {
    self.share = share
  }

  /// The bytes that count as the connection's.
  var bytes: Int { state.withLock { $0.hasEnded ? 0 : $0.bytes } }

  package func take(_ count: Int, besides counted: Int) -> Bool {
    share.budget.addDecoded(count, isLittle: counted + count <= DecodedMemory.little) {
      add(count)
    }
  }

  package var most: Int { share.budget.mostDecoded }

  package func giveBack(_ count: Int) { add(-count) }

  package var refusal: String {
    "the server's memoryLimit of \(share.budget.limit) bytes has no room for the decoded body"
  }

  private func add(_ count: Int) {
    state.withLock { state in
      state.bytes += count
      share.add(state.hasEnded ? HeldMemory(outlived: count) : HeldMemory(open: count))
    }
  }

  /// Notes that the connection ends: what its handlers still hold is freed when they return.
  func connectionEnds() {
    state.withLock { state in
      guard !state.hasEnded else { return }
      state.hasEnded = true
      if state.bytes > 0 { share.add(HeldMemory(open: -state.bytes, outlived: state.bytes)) }
    }
  }
}

/// A decoded body, which counts as long as it lives.
package struct Decoded<Message> {
  package let message: Message
  fileprivate let lease: DecodedLease?

  init(_ type: Message.Type, from bytes: [UInt8], in account: DecodedMemory?) throws(BodyError)
  where Message: BodyDecodable {
    var memory = DecodingMemory(for: type, account: account)
    do throws(BodyError) {
      message = try Message(copying: bytes, charging: &memory)
    } catch {
      memory.giveBack()
      throw error
    }
    let count = memory.settle()
    lease = count > 0 ? account.map { DecodedLease(count, of: $0) } : nil
  }

  /// Ends its part in the account: until this call, it counts though only its message is used.
  package func release() {
    withExtendedLifetime(lease) {}
  }
}

/// What a decoded body takes of an account, given back on any thread.
private final class DecodedLease: Sendable {
  private let count: Int
  private let account: DecodedMemory

  init(_ count: Int, of account: DecodedMemory) {
    self.count = count
    self.account = account
  }

  deinit { account.giveBack(count) }
}

/// What the item that a handler has read last takes, decoded; until this is released.
final class ItemMemory: Sendable {
  private let account: DecodedMemory
  private let lease = Mutex<DecodedLease?>(nil)

  init(in account: DecodedMemory) {
    self.account = account
  }

  /// Decodes an item, once the one before was released.
  func decode<Item: BodyDecodable>(
    _ type: Item.Type, from bytes: [UInt8]
  ) throws(BodyError) -> Item {
    let decoded = try Decoded(type, from: bytes, in: account)
    if decoded.lease != nil { lease.withLock { $0 = decoded.lease } }
    return decoded.message
  }

  func release() { lease.withLock { $0 = nil } }
}
