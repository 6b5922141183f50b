// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkDriver
package import LongLinkTransport

/// Carries out a call in place of the client's link.
package protocol CallCarrier: Sendable {
  /// The operation of the call as text, for errors, such as `GET https://example.com/nodes`.
  var operation: String { get }

  /// Begins one exchange. The options have a timeout.
  ///
  /// It is called on the loop. `completion` is called once, on the same loop, in a later job.
  func begin(
    _ options: RequestOptions, on loop: EventLoop,
    _ completion: @escaping @Sendable (Result<[UInt8], LongLinkError>) -> Void
  ) -> any CallExchange
}

/// An exchange that can be cancelled.
package protocol CallExchange: Sendable {
  /// Ends the exchange with `cancelled`, unless it has ended. It may be called on any thread.
  func cancel()
}

extension RequestHandle: CallExchange {}
