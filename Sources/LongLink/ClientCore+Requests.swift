import LongLinkConnection
import LongLinkCore
import LongLinkTransport

extension ClientCore: PeerSessionOwner {
  func register(_ options: RequestOptions) -> RequestTicket {
    requests.register(options, defaults: defaults)
  }

  func launch(
    _ ticket: RequestTicket, _ type: MessageType, _ body: any BodyEncodable & Sendable,
    _ options: RequestOptions, _ completion: Completion
  ) {
    let offline = options.offline ?? defaults.offline
    guard requests.current == nil || closing != nil else {
      requests.launch(ticket, type, body, options, offline: offline, completion)
      return
    }
    if closing != nil {
      requests.launch(ticket, type, body, options, completion) { operation in
        LongLinkError(.closed, doing: operation, detail: "the client was closed")
      }
    } else if isOffline, offline == .fail {
      requests.launch(ticket, type, body, options, completion) { operation in
        notConnected(operation)
      }
    } else {
      requests.launch(ticket, type, body, options, offline: offline, completion)
      start()
    }
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
