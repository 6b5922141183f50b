// SPDX-License-Identifier: Apache-2.0

package import LongLinkDriver
package import LongLinkCore
@_spi(Loop) package import LongLinkTransport

/// An event of a client's links, for oracles and tests. No event is per request.
package enum LinkEvent: Hashable, Sendable {
  /// An attempt to connect to one address begins. `replaces` means that another link carries the
  /// requests meanwhile.
  case attempt(UInt32, round: UInt32, server: Endpoint, address: SocketAddress, replaces: Bool)
  /// The connect or its handshake failed, or lost the race.
  case failed(UInt32, CloseReason?)
  /// All attempts of a round have failed. `replaces` means that another link carries the requests.
  case roundFailed(server: Endpoint, replaces: Bool)
  /// The handshake is complete; new requests go to this link.
  case established(UInt32)
  /// The link has proved itself: see `ReconnectPolicy`.
  case worked(UInt32)
  /// The server has accepted the renewal of the link's credential.
  case renewed(UInt32)
  /// A damaged packet was dropped, and the link continues.
  case damaged(UInt32, Violation)
  /// The server has sent goaway, with the time before clients may reconnect.
  case goaway(UInt32, ResponseCode, retryAfter: Duration, spread: Duration)
  /// The link has ended; the connection is closed.
  case ended(UInt32, CloseReason, worked: Bool)
  /// The next round begins after `delay`, which was drawn from `window`. `failures` counts failed
  /// rounds, and links that never worked, since a link last worked.
  case waiting(failures: Int, window: Duration, delay: Duration, LinkWait.Cause)
  /// A short link that was open has ended.
  case shortEnded(UInt32, CloseReason)
  /// `pathChanged` was called.
  case pathChanged(network: String?)
  /// `suspend` was called.
  case suspended
  /// `resume` was called.
  case resumed
}

/// A callback for link events, on the client's loop.
package typealias LinkObserver = @Sendable (LinkInstant, LinkEvent) -> Void

extension LongLinkClient {
  /// Sets the only observer of link events. It sees the effects of all later calls.
  package func observeLinks(_ observer: @escaping LinkObserver) {
    loop.execute { [core] in core.value.observer = observer }
  }
}

extension ClientCore {
  /// Reports an event to the observer, if there is one.
  func notifyObserver(_ event: @autoclosure () -> LinkEvent) {
    if let observer { observer(loop.now, event()) }
  }
}
