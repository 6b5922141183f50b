// SPDX-License-Identifier: Apache-2.0

/// Joins the fragments of messages, for one connection.
struct MessageJoiner {
  private struct Key: Hashable {
    let kind: WireFrame.Kind
    let serial: UInt32
  }

  private var unfinished: [Key: WireFrame] = [:]

  /// Whether a frame is part of a message of which an earlier fragment has arrived.
  func continues(_ frame: WireFrame) -> Bool {
    unfinished[Key(kind: frame.kind, serial: frame.serial)] != nil
  }

  /// Takes a frame; returns the whole message if this was its last part.
  mutating func join(_ frame: WireFrame) -> WireFrame? {
    let key = Key(kind: frame.kind, serial: frame.serial)
    guard var message = unfinished.removeValue(forKey: key) else {
      guard frame.moreFollows else { return frame }
      unfinished[key] = frame
      return nil
    }
    message.body += frame.body
    guard !frame.moreFollows else {
      unfinished[key] = message
      return nil
    }
    message.moreFollows = false
    return message
  }

  /// Forgets the fragments of a request that was cancelled.
  mutating func drop(_ serial: UInt32) {
    unfinished[Key(kind: .request, serial: serial)] = nil
    dropItem(serial)
  }

  /// Forgets the fragments of an item whose stream has ended.
  mutating func dropItem(_ serial: UInt32) {
    unfinished[Key(kind: .item, serial: serial)] = nil
  }
}
