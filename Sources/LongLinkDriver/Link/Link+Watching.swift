// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import LongLinkTransport

/// One stream of a link, as people who watch the link see it.
package struct StreamView: Sendable {
  package let serial: UInt32
  /// The type of the request; nil for a request of this side.
  package let type: MessageType?
  /// The credit that is left: this side's, or if it sends no items, the peer's.
  package let credit: Int
}

extension Link {
  /// The streams with the lowest serials, at most `count`.
  package func streams(most count: Int) -> [StreamView] {
    connection.streams.serials(most: count).map { serial in
      StreamView(
        serial: serial, type: connection.inbound.handler(of: serial)?.request.type,
        credit: connection.streams.credit(of: serial))
    }
  }
}
