// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
@_spi(Loop) package import LongLinkTransport

extension LongLinkServer {
  /// Takes a short link that a gateway has accepted, on any thread: a transport that carries the
  /// bytes of one request and its response. The server's routes, limits and drain apply to it as to
  /// a connection, and one of the server's loops adopts it.
  ///
  /// The transport's `read` returns `end` when the client's bytes are complete, and throws when the
  /// client has given the request up. After the `end`, the server has no interest in reading, but
  /// the transport still reports a failure as read readiness. To complete the response, the server
  /// calls `shutDownWriting` and then `close`. `close` alone, or `reset`, breaks the response off.
  ///
  /// A transport that the server does not take, because it is not started, is full or was shut
  /// down, is released without `adopt`. A server that drains refuses the request with code 503.
  package func accept(short transport: any AcceptedTransport) {
    let lanes = lanesNow
    guard let turn = shortTurns.next(of: lanes.count) else { return }
    let (loop, lane) = lanes[turn]
    loop.execute { lane.value.accept(short: transport) }
  }
}
