// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
@_spi(Loop) package import LongLinkTransport

extension LongLinkServer {
  /// Takes a short link that a gateway has accepted, on any thread: a transport of bytes that
  /// carries one request and its answer. The server's routes, limits and drain hold for it as for a
  /// connection, and one of the server's loops adopts it.
  ///
  /// The transport's `read` returns `end` when the client's bytes have ended in good order, and
  /// throws when the client has given the exchange up. From the `end` on, the server has no
  /// interest in reading: the transport reports a failure as read readiness all the same.
  /// `shutDownWriting` ends the answer in good order, and `close` follows it. `close` without it,
  /// and `reset`, break the exchange off.
  ///
  /// A transport that the server does not take, because it is not started, is full or was shut
  /// down, is released without `adopt`. A server that drains answers with the code 503, refused.
  package func accept(short transport: any AcceptedTransport) {
    let lanes = lanesNow
    guard let turn = shortTurns.next(of: lanes.count) else { return }
    let (loop, lane) = lanes[turn]
    loop.execute { lane.value.accept(short: transport) }
  }
}
