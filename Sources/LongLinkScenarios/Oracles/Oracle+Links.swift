// SPDX-License-Identifier: Apache-2.0

internal import LongLink
internal import LongLinkDriver
internal import LongLinkCore
internal import LongLinkTesting
internal import LongLinkTransport

extension Oracle.State {
  /// Takes an event of a client's links. `local` is the client's time, `now` the world's.
  mutating func heard(
    _ event: LinkEvent, from client: Int, local: LinkInstant, at now: LinkInstant
  ) {
    pacing[client].heard(event, at: local)
    let machine = clients[client].machine.index
    placeAttempts(of: client)
    switch event {
    case .attempt(let id, _, _, let address, _):
      // The connect follows right after this event.
      clients[client].attempts.append((id, address))
    case .ended(let id, let reason, _):
      if reason == .heartbeatLost, let link = clients[client].links[id] {
        links.tookForDead(link: link, on: machine, at: now)
      }
      if case .violation(let violation) = reason {
        clients[client].violations.append(violation.rule)
      }
      clients[client].links[id] = nil
    case .shortEnded(_, .violation(let violation)):
      clients[client].violations.append(violation.rule)
    case .failed(let id, _):
      clients[client].links[id] = nil
    case .renewed:
      renewals += 1
    default:
      break
    }
    recorder?.state(event.text, at: now, lane: machine)
  }

  /// Matches a client's recent attempts to the links of the simulation that they opened, in order.
  private mutating func placeAttempts(of client: Int) {
    for (id, address) in clients[client].attempts {
      clients[client].links[id] = links.takeLink(
        of: clients[client].machine.index, to: address)
    }
    clients[client].attempts = []
  }
}

extension LinkEvent {
  /// A readable description of the event.
  var text: String {
    switch self {
    case .attempt(let id, let round, let server, let address, let replaces):
      "attempt \(id) of round \(round): \(server) at \(address)\(replaces ? ", replacing" : "")"
    case .failed(let id, let reason):
      "attempt \(id) failed" + (reason.map { ": \($0)" } ?? "")
    case .roundFailed(let server, _): "could not connect to any address of \(server)"
    case .established(let id): "connected by attempt \(id)"
    case .worked(let id): "the link of attempt \(id) works"
    case .renewed: "the credential was renewed"
    case .damaged(_, let violation): "dropped a damaged packet: \(violation)"
    case .goaway(_, let code, let retryAfter, let spread):
      "got goaway: \(code), reconnect after \(retryAfter.inSeconds) within \(spread.inSeconds)"
    case .ended(_, let reason, let worked):
      "disconnected: \(reason)\(worked ? "" : ", before it had worked")"
    case .waiting(let failures, let window, let delay, let cause):
      "waits for \(delay.inSeconds) of at most \(window.inSeconds), "
        + "\(failures.of("failure")), \(cause)"
    case .shortEnded(let id, let reason):
      "short link \(id & ~WayMachine.idBit) ended: \(reason)"
    case .pathChanged(let network):
      "network changed" + (network.map { ": \($0)" } ?? "")
    case .suspended: "suspended"
    case .resumed: "resumed"
    }
  }
}
