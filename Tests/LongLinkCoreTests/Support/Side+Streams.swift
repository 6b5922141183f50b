// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

// What an application does with streams.
extension Side {
  /// Sends a request that asks for items with this credit, or announces items, or both.
  @discardableResult
  func stream(
    _ serial: UInt32, credit: UInt32? = nil, largest: Int? = nil, items: Bool = false,
    priority: UInt32 = 0, _ body: [UInt8] = []
  ) -> OutputPosition {
    // It has no text that could not be encoded.
    let metadata = try! Metadata(priority: priority, credit: credit, items: items).encodedBytes()
    let terms = StreamTerms(
      credit: credit.map { Int($0) }, largestWindow: largest, sendsItems: items)
    return request(serial, metadata: metadata, priority: priority, stream: terms, body)
  }

  /// Writes an item, as a sender does that waits for the one before.
  @discardableResult
  func write(_ serial: UInt32, _ item: [UInt8]) -> ItemPlacement {
    let placement = connection.sendItem(serial, count: item.count, at: now) { span in
      item.encode(into: &span)
    }
    if placement == .waiting { sending.insert(serial) }
    drain()
    return placement
  }

  func endItems(_ serial: UInt32) {
    connection.endItems(serial, at: now)
    drain()
  }

  /// The application takes this many of the items that wait, or all.
  func take(_ serial: UInt32, _ count: Int = .max) {
    var costs = untaken[serial] ?? []
    let taken = costs.prefix(count).reduce(0, +)
    costs.removeFirst(min(count, costs.count))
    untaken[serial] = costs
    connection.tookItems(serial, cost: taken, at: now)
    drain()
  }

  /// The application forgets a stream that has ended.
  func forgetStream(_ serial: UInt32) {
    untaken[serial] = nil
    sending.remove(serial)
    if !keepsUnread { connection.tookUnread(serial, cost: .max) }
  }

  func hearStuck(_ serial: UInt32) {
    if holdsItems { connection.lentItems(serial, at: now) } else { stuck.append(serial) }
  }

  func hearStray(_ kind: FrameKind, _ serial: UInt32) {
    guard awaited.contains(serial) else { return }
    // It was counted as late, which it is not.
    if case .dropped = events.last { events.removeLast() }
    connection.rejectStray(kind, serial: serial)
  }

  func hearOverLimit(_ serial: UInt32) {
    events.append(.overLimit(serial))
    if connection.settings.role.owns(serial) {
      _ = cancel(serial)
    } else {
      respond(serial, code: .overloaded)
    }
  }
}
