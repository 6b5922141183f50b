// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// One stream on the link that carries it: what its channel tells the core, by the link.
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
      try core.sendItem(serial, count: count, at: now, sharing: bytes, body)
    }
  }

  /// Ends this side's items behind those that wait.
  func endItems() {
    link.command { core, now in core.endItems(serial, at: now) }
  }

  /// Reports that the application has taken items, with what they cost.
  func took(_ cost: Int) {
    link.command { core, now in core.tookItems(serial, cost: cost, at: now) }
  }

  /// Reports that the application holds all whole items, after `.stuck`.
  func lent() {
    link.command { core, now in core.lentItems(serial, at: now) }
  }

  /// Whether one of the sides has said that it leaves the connection.
  var isDraining: Bool { link.connection.saidGoAway || link.connection.peerGoAway != nil }

  /// Whether items count that the application has not taken, although the request has ended.
  var holdsUnread: Bool { link.connection.streams.holdsUnread(serial) }

  /// Reports that the application has taken some of them, with what they cost; `.max` if it will
  /// take no more.
  func tookUnread(_ cost: Int) { link.note { $0.tookUnread(serial, cost: cost) } }

  /// Moves the item that is being delivered into an inbox.
  func move(_ item: Arrival, to inbox: inout ItemInbox) {
    if item.payload.count >= ItemInbox.leastAlone {
      inbox.append(joined: link.takeBody(of: item), cost: item.cost)
    } else {
      link.connection.withBody(item.payload) { inbox.append($0, cost: item.cost) }
    }
  }
}
