// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
internal import LongLinkCore
internal import LongLinkTransport

extension NetworkState {
  /// The number of times that Linux tries to connect. It waits one second after the first try, then
  /// twice as long each time, and gives up after 127 seconds (tcp(7), `tcp_syn_retries`).
  private static let mostAttempts = 7

  /// Makes a connecting link; throws an errno if connecting fails immediately.
  mutating func connect(
    from loop: Int,
    to address: SocketAddress,
    userTimeout: Int64?
  ) throws(SimulatedErrno) -> Int {
    if case .unix = address.storage, addresses.listener(at: address) == nil {
      throw SimulatedErrno(ENOENT)
    }
    linksMade += 1
    let number = linksMade
    let name = EndName(link: number, side: .initiator)
    let machine = loops[loop].machine
    let end = LinkEnd(
      name,
      machine: machine,
      loop: loop,
      phase: .connecting,
      local: addresses.localAddress(of: machine, towards: address),
      peer: address,
      conditions: conditions.of(address, from: machine, to: addresses.machine(at: address))
    )
    end.userTimeout = userTimeout
    links[number] = NetworkLink(number: number, destination: address, initiator: end)
    record(.connecting, name, address: address)
    sendConnect(number)
    return number
  }

  /// Makes the first or another attempt to connect.
  mutating func sendConnect(_ number: Int) {
    guard let link = links[number], link.initiator.phase == .connecting else { return }
    let end = link.initiator
    link.attempts += 1
    let target = addresses.machine(at: link.destination)
    if let target, areCut(end.machine, target) { return connectAgain(link) }
    let arrival = now + end.output.conditions.drawLatency(using: &generator)
    switch conditions.answer(at: link.destination) {
    case .normal:
      end.output.lastArrival = arrival
      schedule.add(.connect(link: number), at: arrival)
    case .refused:
      let back = arrival + end.output.conditions.drawLatency(using: &generator)
      schedule.add(.answer(link: number, errno: ECONNREFUSED), at: back)
    case .unreachable:
      schedule.add(.answer(link: number, errno: EHOSTUNREACH), at: arrival)
    case .ignored:
      connectAgain(link)
    }
  }

  /// Schedules the next attempt after an unanswered one; after the last attempt, the failure.
  private mutating func connectAgain(_ link: NetworkLink) {
    let patience: Int64 = 1_000_000_000 << Int64(link.attempts - 1)
    schedule.add(
      link.attempts < Self.mostAttempts
        ? .connectAgain(link: link.number) : .answer(link: link.number, errno: ETIMEDOUT),
      at: now + patience
    )
  }

  /// Handles an attempt to connect that has reached its destination.
  mutating func connectArrived(_ number: Int) {
    guard let link = links[number], link.initiator.phase == .connecting else { return }
    record(.connectArrived, link.initiator.name, address: link.destination)
    guard let listener = addresses.listener(at: link.destination) else {
      let back = now + link.initiator.output.conditions.drawLatency(using: &generator)
      schedule.add(.answer(link: number, errno: ECONNREFUSED), at: back)
      return
    }
    guard listener.queue.count < listener.backlog else { return connectAgain(link) }
    let conditions = conditions.of(
      link.destination,
      from: listener.machine,
      to: link.initiator.machine
    )
    let end = LinkEnd(
      link.initiator.name.other,
      machine: listener.machine,
      loop: nil,
      phase: .connected,
      local: link.destination,
      peer: link.initiator.local,
      conditions: conditions
    )
    link.accept(end, in: &self)
    let back = now + end.output.conditions.drawLatency(using: &generator)
    end.output.lastArrival = back
    addresses.listeners[listener.number]?.queue.append(number)
    mark(.listener(listener.number))
    schedule.add(.answer(link: number, errno: 0), at: back)
  }

  /// Handles the answer to an attempt to connect; `errno` is 0 for success.
  mutating func connectAnswered(_ number: Int, _ errno: CInt) {
    guard let end = links[number]?.initiator, end.phase == .connecting else { return }
    end.phase = errno == 0 ? .connected : .failed(errno)
    record(errno == 0 ? .connected : .connectFailed, end.name, value: Int(errno))
    mark(.end(end.name))
  }

  // MARK: Listening

  mutating func listen(
    on loop: Int,
    at address: SocketAddress,
    backlog: Int
  ) throws(SimulatedErrno) -> NetworkListener {
    let machine = loops[loop].machine
    let listener = try addresses.listen(on: loop, of: machine, at: address, backlog: backlog)
    record(.listening, address: listener.address, machine: machine)
    return listener
  }

  mutating func closeListener(_ number: Int) {
    guard let listener = addresses.listeners.removeValue(forKey: number) else { return }
    record(.listenerClosed, address: listener.address, machine: listener.machine)
    for link in listener.queue { reset(EndName(link: link, side: .acceptor)) }
  }
}
