import LongLinkConnection
import LongLinkCore
import LongLinkTransport

extension ClientCore: PeerSessionOwner {
  func submit(
    _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
    _ completion: consuming Completion
  ) -> RequestID {
    if requests.hasLink, closing == nil {
      return requests.submit(type, body, options, completion, defaults: defaults)
    }
    if closing != nil {
      return requests.submit(type, body, copy options, completion, defaults: defaults) {
        LongLinkError(.closed, doing: $0, detail: "the client was closed")
      }
    }
    if isOffline, options.offline ?? defaults.offline == .failUnlessConnecting {
      return requests.submit(
        type, body, copy options, completion, defaults: defaults, failing: notConnected)
    }
    let id = requests.submit(type, body, options, completion, defaults: defaults)
    start()
    return id
  }

  /// Whether there is no link, and none is being made.
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

  func closeSession(_ id: UInt64) {
    // The client may have another link by now, which is not meant.
    guard let link = connections.first(where: { UInt64($0.link.id) == id })?.link else { return }
    link.session.shutDown(at: loop.now)
    link.drain()
  }

  func ping(_ completion: @escaping @Sendable (Result<Duration, LongLinkError>) -> Void) {
    guard closing == nil, let link = requests.current, link.session.isOpen else {
      let code: LongLinkError.Code = closing == nil ? .notConnected : .closed
      completion(.failure(LongLinkError(code, doing: "ping")))
      return
    }
    guard link.session.canPing else {
      completion(
        .failure(
          LongLinkError(
            .unsupported, doing: "ping", detail: "in the dialect no ping of a client is answered",
            peer: link.peer)))
      return
    }
    let now = loop.driver.now
    pingTimes.removeAll { now - $0 >= Wire.pingWindow }
    guard pingTimes.count < ClientCore.mostPings else {
      completion(
        .failure(
          LongLinkError(
            .overloaded, doing: "ping", detail: "\(ClientCore.mostPings) within 10 s",
            peer: link.peer)))
      return
    }
    pingTimes.append(now)
    let id = link.session.ping(at: loop.driver.now)
    pingWaiters.append(PingWaiter(id: id, link: link, completion: completion))
    link.writeAtEndOfTurn()
  }
}
