// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

/// One stream on the link that carries it: by this, a channel gives commands to the link's core.
struct StreamPort {
  let link: Link
  let serial: UInt32

  /// Sends an item, or keeps it until there are credit and room; see `Connection.sendItem`.
  @inline(__always)
  func send(
    count: Int, sharing bytes: () -> [UInt8]?,
    _ body: (inout OutputRawSpan) throws(BodyError) -> Void
  ) throws(BodyError) -> ItemPlacement {
    try link.command { (core, now) throws(BodyError) in
      link.recorded(.sendItem, at: now, UInt64(serial), UInt64(count))
      do throws(BodyError) {
        return try core.sendItem(serial, count: count, at: now, sharing: bytes, body)
      } catch {
        link.recordedFailure()
        throw error
      }
    }
  }

  /// Records that an item has to wait for credit, if that is what it waits for.
  func noteWait() {
    guard let record = link.record, link.connection.streams.lacksCredit(serial) else { return }
    record.stall()
  }

  /// Ends this side's items, after those that wait.
  func endItems() {
    link.recorded(.endItems, at: link.loop.now, UInt64(serial))
    link.command { core, now in core.endItems(serial, at: now) }
  }

  /// Reports that the application has taken items of this cost, in bytes of credit.
  func took(_ cost: Int) {
    link.recorded(.tookItems, at: link.loop.now, UInt64(serial), UInt64(cost))
    link.command { core, now in core.tookItems(serial, cost: cost, at: now) }
  }

  /// Reports, after `.stuck`, that the application has taken all whole items.
  func lent() {
    link.recorded(.lentItems, at: link.loop.now, UInt64(serial))
    link.command { core, now in core.lentItems(serial, at: now) }
  }

  /// Whether one of the sides has said that it leaves the connection.
  var isDraining: Bool { link.connection.goodbyes.isDraining }

  /// Whether the link counts items that the application has not taken, though the request has
  /// ended.
  var holdsUnread: Bool { link.connection.streams.holdsUnread(serial) }

  /// Reports that the application has taken such items of this cost; `.max` if it takes no more.
  func tookUnread(_ cost: Int) {
    link.recorded(.tookUnread, at: link.loop.now, UInt64(serial), UInt64(cost))
    link.note { $0.tookUnread(serial, cost: cost) }
  }

  /// Moves the item that is being delivered into an inbox.
  func move(_ item: Arrival, to inbox: inout ItemInbox) {
    if item.payload.count >= ItemInbox.leastAlone {
      inbox.append(joined: link.takeBody(of: item), cost: item.cost)
    } else {
      link.connection.inbox.withBody(item.payload) { inbox.append($0, cost: item.cost) }
    }
  }
}
