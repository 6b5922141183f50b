// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
import LongLinkTransport

extension ClientCore: PeerOwner {
  var requestsIfAny: Requests? { requests }

  func submit(
    _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
    _ completion: consuming Completion
  ) -> RequestID {
    if requests.hasLink, closing == nil {
      return requests.submit(type, body, options, completion, defaults: defaults)
    }
    let failure = failureOfRequests(options.offline ?? defaults.offline)
    return requests.submit(
      type, body, options, completion, defaults: defaults, failure: failure
    ) { start() }
  }

  func submit(
    _ type: MessageType, _ body: RequestBody, _ options: RequestOptions, _ completion: Completion,
    after delay: Int64
  ) -> RequestID {
    let isReady = requests.hasLink && closing == nil
    let failure = isReady ? nil : failureOfRequests(options.offline ?? defaults.offline)
    guard failure == nil else {
      return requests.submit(
        type, body, options, completion, defaults: defaults, failure: failure)
    }
    let id = requests.submit(
      type, body, options, completion, defaults: defaults, after: delay)
    if !isReady { start() }
    return id
  }

  var reconnect: ReconnectPolicy { configuration.reconnect }

  /// Makes the error of a request that must fail at once; nil if it may wait for a link.
  private func failureOfRequests(
    _ offline: OfflinePolicy
  ) -> ((LongLinkError.Operation) -> LongLinkError)? {
    if closing != nil {
      return { LongLinkError(.closed, doing: $0, detail: "the client was closed") }
    }
    if machine.isGivenUp { return notConnected }
    // Attempts to connect to servers that speak TLS are in vain, until the servers are replaced or
    // change.
    let isHopeless =
      servers.areAllSecured && !machine.ways.isUsed || offline == .failUnlessConnecting
    return machine.isOffline && isHopeless ? notConnected : nil
  }

  /// Makes a ticket of a request that is yet to be sent.
  func ticket(_ key: [UInt8]) -> Result<OnceTicket, LongLinkError> {
    Result { () throws(LongLinkError) in try requests.ticket(key) }
  }

  func cancel(_ id: RequestID) {
    requests.cancel(id)
  }

  func state(of id: RequestID) -> RequestState? {
    requests.state(of: id)
  }

  func perform(_ command: PeerCommand, on id: UInt64) {
    // The connection with this number, because the current one may be a later one.
    connections.first { UInt64($0.link.id) == id }?.closedByApplication()
  }

  func ping(_ completion: @escaping @Sendable (Result<Duration, LongLinkError>) -> Void) {
    guard closing == nil, let link = requests.current, link.isOpen else {
      completion(
        .failure(
          closing == nil
            ? notConnected("ping")
            : LongLinkError(.closed, doing: "ping", detail: "the client was closed")))
      return
    }
    do throws(LongLinkError) {
      try pings.ping(over: link, at: loop.driver.now, completion)
    } catch {
      completion(.failure(error))
    }
  }
}
