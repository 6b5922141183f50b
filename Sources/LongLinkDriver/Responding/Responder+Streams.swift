// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension Responder: StreamSide {
  /// An item, or the end of the items, of a request has arrived.
  @inline(__always)
  package func received(item: Arrival, on link: Link) {
    link.connection.inbound.handler(of: item.serial)?.channel?.received(item, on: link)
  }

  package func heard(_ news: StreamNews, of serial: UInt32, on link: Link) {
    guard let work = link.connection.inbound.handler(of: serial) else { return }
    switch news {
    case .itemSent: work.channel?.itemSent()
    case .stuck: work.channel?.peerIsStuck()
    case .overLimit:
      interrupt(work, .overloaded, "an item and the windows of all streams exceed the limit")
    }
  }
}

extension Responder {
  /// A side has said that it leaves the link: handlers that read until then get the end of their
  /// items. Call it once for each side, since it looks at all handlers of streams.
  package func tellDraining(of link: Link) {
    guard link.connection.hasStreams else { return }
    for work in link.connection.inbound.handlers { work.channel?.drains() }
  }

  /// Why the items of a request do not fit its handler; nil if they do.
  @inline(__always)
  func shapeProblem(of arrival: Arrival, on link: Link, _ wanted: StreamShape) -> String? {
    // Usually no request of the connection carries items, and this route takes none.
    wanted.isEmpty && !link.connection.hasStreams ? nil : problem(of: arrival, on: link, wanted)
  }

  private func problem(of arrival: Arrival, on link: Link, _ wanted: StreamShape) -> String? {
    let shape = link.connection.streams.shape(of: arrival.serial)
    guard shape == wanted else {
      return """
        \(routes.title(of: arrival.type)) carries \(wanted.text); the request asks for \
        \(shape.text)
        """
    }
    guard shape.isEmpty || link.metadata(of: arrival)?.key == nil else {
      return "a stream has no idempotency key"
    }
    return nil
  }

  func start(_ route: StreamRoute, _ request: InboundRequest, on link: Link) {
    let channel = ItemChannel(
      request.type, route.shape, of: routes.names[request.type].map { MethodName($0) },
      itemTimeout: route.itemTimeout, serial: request.serial, on: link)
    let bound = BoundChannel(channel, decoded: link.memory.decoded)
    let handler = route.handler
    start(
      { request in try await handler(request, bound) }, route.placement, request, channel, on: link)
  }
}

extension StreamShape {
  /// The directions in which items go, as text for people.
  fileprivate var text: String {
    switch self {
    case []: "no items"
    case .requestItems: "items from the caller"
    case .responseItems: "items to the caller"
    default: "items in both directions"
    }
  }
}
