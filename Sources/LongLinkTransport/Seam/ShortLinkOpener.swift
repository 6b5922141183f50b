// SPDX-License-Identifier: Apache-2.0

/// Where a client's short links come from: HTTP, or a simulated network.
///
/// A short link is a transport of bytes that carries one exchange. The client writes, calls
/// `shutDownWriting` after its last byte, reads to the `end`, and closes. It calls `reset` instead
/// where it gives the exchange up, at any time: that has to reach the server as a failure.
///
/// Of the transport:
/// - `finishConnecting` returns true, or throws, once; it throws only while no byte was written. So
///   its failure proves that the request did not leave. What fails later fails `read` or `write`.
/// - `write` takes bytes only if they may leave: those it has returned count as sent.
/// - `read` returns `end` where the answer has ended in good order, and throws where it broke off.
///   An answer that holds no frames, as that of a proxy, ends or throws without a byte, and
///   `failureText` says what it was.
package protocol ShortLinkOpener: Sendable {
  /// The name of the server, for errors, logs and counters: a URL. It does not change.
  var name: String { get }
  /// Whether an attacker on the path cannot read the bytes: they are encrypted, or stay on this
  /// machine.
  var isConfidential: Bool { get }
  /// Begins to open a short link, on the loop that will own it.
  func open(on loop: EventLoop) throws(SocketError) -> any Transport
}
