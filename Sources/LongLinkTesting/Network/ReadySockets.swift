// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import Synchronization

/// A socket of the simulated network that can become ready.
enum SocketName: Hashable {
  case end(EndName)
  case listener(Int)
}

/// The sockets of one loop that may be ready, in the order in which they became so.
struct ReadySockets {
  /// Whether a socket may be ready. It can be read without the network's lock.
  let mayBeAny = Box(Atomic(false))
  private var names: [SocketName] = []
  private var members: Set<SocketName> = []

  /// The first socket; nil if there is none, which then also clears `mayBeAny`.
  var first: SocketName? {
    if names.isEmpty { mayBeAny.value.store(false, ordering: .relaxed) }
    return names.first
  }

  mutating func insert(_ name: SocketName) {
    guard members.insert(name).inserted else { return }
    names.append(name)
    mayBeAny.value.store(true, ordering: .relaxed)
  }

  mutating func removeFirst() {
    members.remove(names.removeFirst())
  }

  mutating func takeAll() -> [SocketName] {
    defer {
      names.removeAll(keepingCapacity: true)
      members.removeAll(keepingCapacity: true)
    }
    return names
  }
}
