// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension Requests: StreamSide {
  /// An item, or an end, has arrived for a request of this side.
  @inline(__always)
  package func received(item: Arrival, on link: Link) {
    channel(item.serial, on: link)?.received(item, on: link)
  }

  /// The item that a request of this side had waiting has been sent.
  package func itemSent(_ serial: UInt32, on link: Link) {
    channel(serial, on: link)?.itemSent()
  }

  /// The peer gets no credit for the rest of an item, because whole items were not taken.
  package func peerIsStuck(_ serial: UInt32, on link: Link) {
    channel(serial, on: link)?.peerIsStuck()
  }

  /// The rest of an item does not fit into the limit of all windows.
  package func streamOverLimit(_ serial: UInt32, on link: Link) {
    guard let (id, _) = table.carried(serial, by: link.id), let entry = table.end(id) else {
      return
    }
    let request = entry.payload
    let delivery = withdraw(id, entry, notifying: true)
    finish(
      request,
      .failure(
        error(
          .overloaded, id, request, delivery,
          "an item and the windows of all streams exceed the connection's limit", on: link)))
  }

  /// A frame of a stream came whose serial is this side's.
  package func stray(_ kind: FrameKind, _ serial: UInt32, on link: Link) {
    if table.awaits(serial, on: link.id) { link.rejectStray(kind, serial: serial) }
  }

  @inline(__always)
  func channel(_ serial: UInt32, on link: Link) -> ItemChannel? {
    table.slot(of: serial, on: link.id).flatMap { table.withPayload(at: $0) { $0.channel } }
  }
}
