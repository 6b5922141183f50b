// SPDX-License-Identifier: Apache-2.0

package import LongLinkDriver
package import LongLinkCore
@_spi(Loop) package import LongLinkTransport

/// What happens to the links of a client, for those who judge whether it should have.
///
/// Nothing is told per request.
package enum LinkEvent: Hashable, Sendable {
  /// A connect to one address begins. `replaces` tells that another link carries the requests
  /// meanwhile.
  case attempt(UInt32, round: UInt32, server: Endpoint, address: SocketAddress, replaces: Bool)
  /// The connect, or its handshake, came to nothing, or lost the race.
  case failed(UInt32, CloseReason?)
  /// All attempts of a round have failed; `replaces` as above.
  case roundFailed(server: Endpoint, replaces: Bool)
  /// The handshake is complete; new requests go to this link.
  case established(UInt32)
  /// The link has answered a request, or lived through a heartbeat interval.
  case worked(UInt32)
  /// A damaged packet was dropped, and the link goes on.
  case damaged(UInt32, Violation)
  /// The server has said goaway, and how long it wants to be left alone.
  case goaway(UInt32, ResponseCode, retryAfter: Duration, spread: Duration)
  /// The link has ended; the connection is closed.
  case ended(UInt32, CloseReason, worked: Bool)
  /// The next round begins after `delay`, which was drawn from `window`; `failures` rounds, or
  /// links that never worked, have failed since a link worked.
  case waiting(failures: Int, window: Duration, delay: Duration, LinkWait.Cause)
  /// The client was told that the network has changed.
  case pathChanged(network: String?)
  /// The client was told to keep no link.
  case suspended
  /// The client was told to connect again.
  case resumed
}

/// Hears of link events, on the client's loop.
package typealias LinkObserver = @Sendable (LinkInstant, LinkEvent) -> Void

extension LongLinkClient {
  /// Sets the one observer of link events, before anything that is done after this call.
  package func observeLinks(_ observer: @escaping LinkObserver) {
    loop.execute { [core] in core.value.observer = observer }
  }
}

extension ClientCore {
  /// Tells the observer, where there is one.
  func tell(_ event: @autoclosure () -> LinkEvent) {
    if let observer { observer(loop.now, event()) }
  }
}
