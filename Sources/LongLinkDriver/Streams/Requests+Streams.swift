// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension Requests: StreamSide {
  /// Handles an item, or the end of the items, for a request of this side.
  @inline(__always)
  package func received(item: Arrival, on link: Link) {
    channel(item.serial, on: link)?.received(item, on: link)
  }

  package func heard(_ news: StreamNews, of serial: UInt32, on link: Link) {
    switch news {
    case .itemSent: channel(serial, on: link)?.itemSent()
    case .stuck: channel(serial, on: link)?.peerIsStuck()
    case .overLimit: endOverLimit(serial, on: link)
    }
  }

  /// Fails a request because the rest of an item does not fit into the limit of all windows.
  private func endOverLimit(_ serial: UInt32, on link: Link) {
    guard let (id, _) = table.carried(serial, by: link.id), let entry = end(id) else {
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

  @inline(__always)
  func channel(_ serial: UInt32, on link: Link) -> ItemChannel? {
    table.slot(of: serial, on: link.id).flatMap { table.withPayload(at: $0) { $0.channel } }
  }
}
