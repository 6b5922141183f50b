// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
import LongLinkTransport

extension ClientCore: PeerOwner {
  func submit(
    _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
    _ completion: consuming Completion
  ) -> RequestID {
    if requests.hasLink, closing == nil {
      return requests.submit(type, body, options, completion, defaults: defaults)
    }
    if closing != nil {
      return requests.failAtOnce(type, body, copy options, completion, defaults: defaults) {
        LongLinkError(.closed, doing: $0, detail: "the client was closed")
      }
    }
    if isOffline, options.offline ?? defaults.offline == .failUnlessConnecting {
      return requests.failAtOnce(
        type, body, copy options, completion, defaults: defaults, notConnected)
    }
    let id = requests.submit(type, body, options, completion, defaults: defaults)
    start()
    return id
  }

  /// Whether there is no link, and no connect is in progress.
  private var isOffline: Bool {
    switch machine.state {
    case .waiting, .suspended: true
    case .idle, .connecting, .connected, .migrating, .closed: false
    }
  }

  func cancel(_ id: RequestID) {
    requests.cancel(id)
  }

  func state(of id: RequestID) -> RequestState? {
    requests.state(of: id)
  }

  func closeConnection(_ id: UInt64) {
    // Not the current link, which may be a later one.
    connections.first { UInt64($0.link.id) == id }?.link.shutDown()
  }

  func ping(_ completion: @escaping @Sendable (Result<Duration, LongLinkError>) -> Void) {
    guard closing == nil, let link = requests.current, link.isOpen else {
      let code: LongLinkError.Code = closing == nil ? .notConnected : .closed
      completion(.failure(LongLinkError(code, doing: "ping")))
      return
    }
    guard link.canPing else {
      completion(
        .failure(
          LongLinkError(
            .unsupported, doing: "ping", detail: "the dialect does not answer a client's pings",
            peer: link.peer)))
      return
    }
    let now = loop.driver.now
    pingTimes.removeAll { now - $0 >= Wire.pingWindow }
    guard pingTimes.count < ClientCore.mostPings else {
      completion(
        .failure(
          LongLinkError(
            .overloaded, doing: "ping",
            detail: "at most \(ClientCore.mostPings) pings may be sent within 10 s",
            peer: link.peer)))
      return
    }
    pingTimes.append(now)
    pingWaiters.append(PingWaiter(id: link.ping(), link: link, completion: completion))
  }
}
