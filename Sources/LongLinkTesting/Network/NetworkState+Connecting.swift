// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

extension NetworkState {
  /// The number of attempts that Linux makes to connect. It waits one second after the first, then
  /// twice as long each time, and gives up after 127 seconds (tcp(7), `tcp_syn_retries`).
  private static let mostAttempts = 7

  /// Makes a connecting link; throws an errno if connecting fails immediately.
  mutating func connect(
    from loop: Int,
    to address: SocketAddress,
    userTimeout: Int64?
  ) throws(Errno) -> Int {
    if case .unix = address.storage, listener(at: address) == nil { throw Errno(ENOENT) }
    linksMade += 1
    let number = linksMade
    let name = EndName(link: number, side: .initiator)
    let machine = loops[loop].machine
    let end = LinkEnd(
      name,
      machine: machine,
      loop: loop,
      phase: .connecting,
      local: localAddress(of: machine, towards: address),
      peer: address,
      conditions: conditions(from: machine, to: self.machine(at: address), address)
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
    let target = machine(at: link.destination)
    if let target, areCut(end.machine, target) { return connectAgain(link) }
    let arrival = now + drawLatency(end.output.conditions)
    switch connectBehaviorByAddress[link.destination] ?? connectBehavior {
    case .normal:
      end.output.lastArrival = arrival
      schedule.add(.connect(link: number), at: arrival)
    case .refused:
      let back = arrival + drawLatency(end.output.conditions)
      schedule.add(.answer(link: number, errno: ECONNREFUSED), at: back)
    case .unreachable:
      schedule.add(.answer(link: number, errno: EHOSTUNREACH), at: arrival)
    case .ignored:
      connectAgain(link)
    }
  }

  /// Schedules the next attempt after one without an answer, or the failure after the last.
  private mutating func connectAgain(_ link: NetworkLink) {
    let patience: Int64 = 1_000_000_000 << Int64(link.attempts - 1)
    schedule.add(
      link.attempts < Self.mostAttempts
        ? .connectAgain(link: link.number) : .answer(link: link.number, errno: ETIMEDOUT),
      at: now + patience
    )
  }

  /// The conditions from one machine to another on links to an address.
  private func conditions(
    from machine: Int,
    to other: Int?,
    _ destination: SocketAddress
  ) -> LinkConditions {
    other.flatMap { conditionsByPath[MachinePath(from: machine, to: $0)] }
      ?? conditionsByAddress[destination] ?? conditions
  }

  /// An attempt to connect has reached its destination.
  mutating func connectArrived(_ number: Int) {
    guard let link = links[number], link.initiator.phase == .connecting else { return }
    record(.connectArrived, link.initiator.name, address: link.destination)
    guard let listener = listener(at: link.destination) else {
      let back = now + drawLatency(link.initiator.output.conditions)
      schedule.add(.answer(link: number, errno: ECONNREFUSED), at: back)
      return
    }
    guard listener.queue.count < listener.backlog else { return connectAgain(link) }
    let conditions = conditions(
      from: listener.machine,
      to: link.initiator.machine,
      link.destination
    )
    let back = now + drawLatency(conditions)
    let end = LinkEnd(
      link.initiator.name.other,
      machine: listener.machine,
      loop: nil,
      phase: .connected,
      local: link.destination,
      peer: link.initiator.local,
      conditions: conditions
    )
    end.output.lastArrival = back
    link.acceptor = end
    listeners[listener.number]?.queue.append(number)
    mark(.listener(listener.number))
    schedule.add(.answer(link: number, errno: 0), at: back)
  }

  /// The answer to an attempt to connect has reached the initiator.
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
  ) throws(Errno) -> NetworkListener {
    var address = address
    if address.port == 0 {
      address = try withFreePort(address)
    } else if isTaken(address) {
      throw Errno(EADDRINUSE)
    }
    listenersMade += 1
    let listener = NetworkListener(
      number: listenersMade,
      machine: loops[loop].machine,
      loop: loop,
      address: address,
      backlog: max(backlog, 1)
    )
    listeners[listener.number] = listener
    machinesByAddress[address] = listener.machine
    record(.listening, address: address, machine: listener.machine)
    return listener
  }

  /// Takes the first waiting link; nil if there is none.
  mutating func accept(_ number: Int) -> Int? {
    guard listeners[number]?.queue.isEmpty == false else { return nil }
    return listeners[number]?.queue.removeFirst()
  }

  mutating func closeListener(_ number: Int) {
    guard let listener = listeners.removeValue(forKey: number) else { return }
    record(.listenerClosed, address: listener.address, machine: listener.machine)
    for link in listener.queue { reset(EndName(link: link, side: .acceptor)) }
  }

  // MARK: Addresses

  /// The listener for an address: one at that address, or one for all addresses of its port.
  private func listener(at address: SocketAddress) -> NetworkListener? {
    let found = listeners.values.filter { $0.address == address || $0.address.covers(address) }
    return found.first { $0.address == address } ?? found.min { $0.number < $1.number }
  }

  /// The machine that is reached at an address; nil if none has ever listened there.
  private func machine(at address: SocketAddress) -> Int? {
    listener(at: address)?.machine ?? machinesByAddress[address]
      ?? machinesByAddress[address.forAllHosts]
  }

  private func isTaken(_ address: SocketAddress) -> Bool {
    listeners.values.contains {
      $0.address == address || $0.address.covers(address) || address.covers($0.address)
    }
  }

  private mutating func withFreePort(
    _ address: SocketAddress
  ) throws(Errno) -> SocketAddress {
    for _ in Self.firstPort ... .max {
      let candidate = address.withPort(takePort())
      if !isTaken(candidate) { return candidate }
    }
    throw Errno(EADDRINUSE)
  }

  private mutating func takePort() -> UInt16 {
    let port = nextPort
    nextPort = port == .max ? Self.firstPort : port + 1
    return port
  }

  /// The source address of a connection: the loopback address for one to loopback, else the
  /// machine's address, from a range reserved by RFC 2544 or RFC 3849.
  private mutating func localAddress(
    of machine: Int,
    towards address: SocketAddress
  ) -> SocketAddress? {
    switch address.storage {
    case .ipv4(let host, _):
      let port = takePort()
      let own = host >> 24 == 127 ? 0x7F00_0001 : 0xC612_0000 | UInt32(machine + 1) & 0x1_FFFF
      return SocketAddress(.ipv4(own, port: port))
    case .ipv6(let upper, let lower, _, let scope):
      let isLoopback = upper == 0 && lower == 1
      let port = takePort()
      return SocketAddress(
        .ipv6(
          upper: isLoopback ? 0 : 0x2001_0DB8_0000_0000,
          lower: isLoopback ? 1 : UInt64(machine + 1),
          port: port,
          scope: scope
        )
      )
    case .unix:
      return .unix(path: "")
    }
  }
}

/// The system's number for an error.
struct Errno: Error {
  let code: CInt

  init(_ code: CInt) {
    self.code = code
  }
}

extension SocketAddress {
  func withPort(_ port: UInt16) -> SocketAddress {
    switch storage {
    case .ipv4(let host, _): SocketAddress(.ipv4(host, port: port))
    case .ipv6(let upper, let lower, _, let scope):
      SocketAddress(.ipv6(upper: upper, lower: lower, port: port, scope: scope))
    case .unix: self
    }
  }

  /// The address for all hosts, with the same port.
  var forAllHosts: SocketAddress {
    switch storage {
    case .ipv4(_, let port): SocketAddress(.ipv4(0, port: port))
    case .ipv6(_, _, let port, _): SocketAddress(.ipv6(upper: 0, lower: 0, port: port, scope: 0))
    case .unix: self
    }
  }

  /// Whether this is the address for all hosts, with the port of `other`.
  func covers(_ other: SocketAddress) -> Bool {
    switch (storage, other.storage) {
    case (.ipv4(0, let port), .ipv4(_, let otherPort)): port == otherPort
    case (.ipv6(0, 0, let port, _), .ipv6(_, _, let otherPort, _)): port == otherPort
    default: false
    }
  }
}
