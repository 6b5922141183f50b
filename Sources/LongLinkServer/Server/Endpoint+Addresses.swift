// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
public import LongLinkDriver
@_spi(Loop) import LongLinkTransport

extension Endpoint {
  /// The addresses to listen on: looks up a name on a loop.
  func addresses(on loop: EventLoop) async throws(LongLinkError) -> [SocketAddress] {
    switch kind {
    case .unix(let path):
      return [.unix(path: path)]
    case .host(let host, let port):
      let result: Result<[SocketAddress], ResolveError> = await suspend { waiter in
        loop.execute {
          loop.driver.resolve(host: host, port: port, for: LookUpOwner()) { waiter($0) }
        }
      }
      switch result {
      case .success(let found):
        return found
      case .failure(let error):
        throw LongLinkError(.connectFailed, doing: "listen on \(self)", detail: "\(error)")
      }
    }
  }
}

extension LongLinkServer {
  /// The endpoints at which clients on this machine reach the server: its `addresses`, with actual
  /// ports. Empty before `start`.
  public var endpoints: [Endpoint] { addresses.map(Endpoint.init) }

  /// The first of `endpoints`, for clients on this machine. It traps if there is none, as before
  /// `start`.
  public var endpoint: Endpoint {
    guard let first = endpoints.first else { preconditionFailure("the server is not started") }
    return first
  }
}
