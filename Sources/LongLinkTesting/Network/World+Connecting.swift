internal import LongLinkCore
internal import LongLinkTransport

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

extension World {
  /// When Linux gives an attempt to connect up that nobody answers (tcp(7), `tcp_syn_retries`).
  private static let connectTimeout: Int64 = 127_000_000_000
  /// When a request to connect is sent again that found no room (RFC 6298: one second).
  private static let retryInterval: Int64 = 1_000_000_000

  /// Makes a link whose connect is under way; throws the errno of what fails at once.
  mutating func connect(
    from loop: Int,
    to address: SocketAddress,
    userTimeout: Int64?
  ) throws(Errno) -> Int {
    if case .unix = address.storage, listener(at: address) == nil { throw Errno(ENOENT) }
    linksMade += 1
    let number = linksMade
    let name = EndName(link: number, side: .initiator)
    let conditions = conditionsByAddress[address] ?? conditions
    let end = LinkEnd(
      name,
      loop: loop,
      phase: .connecting,
      local: localAddress(of: loop, towards: address),
      peer: address,
      conditions: conditions
    )
    end.userTimeout = userTimeout
    links[number] = NetworkLink(number: number, destination: address, initiator: end)
    record(.connecting, name, address: address)
    let arrival = now + drawLatency(conditions)
    switch connectBehaviorByAddress[address] ?? connectBehavior {
    case .normal:
      end.output.lastArrival = arrival
      schedule.add(.connect(link: number), at: arrival)
    case .refused:
      let back = arrival + drawLatency(conditions)
      schedule.add(.answer(link: number, errno: ECONNREFUSED), at: back)
    case .unreachable:
      schedule.add(.answer(link: number, errno: EHOSTUNREACH), at: arrival)
    case .ignored:
      schedule.add(.answer(link: number, errno: ETIMEDOUT), at: now + Self.connectTimeout)
    }
    return number
  }

  /// An attempt to connect is at its destination.
  mutating func connectArrived(_ number: Int) {
    guard let link = links[number] else { return }
    record(.connectArrived, link.initiator.name, address: link.destination)
    let conditions = link.initiator.output.conditions
    let back = now + drawLatency(conditions)
    guard let listener = listener(at: link.destination) else {
      schedule.add(.answer(link: number, errno: ECONNREFUSED), at: back)
      return
    }
    guard listener.queue.count < listener.backlog else {
      schedule.add(.connect(link: number), at: now + Self.retryInterval)
      return
    }
    let end = LinkEnd(
      link.initiator.name.other,
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

  /// The answer to an attempt to connect is back.
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
      loop: loop,
      address: address,
      backlog: max(backlog, 1)
    )
    listeners[listener.number] = listener
    record(.listening, address: address)
    return listener
  }

  /// Takes the first link that waits; the listener must be there.
  mutating func accept(_ number: Int) -> Int? {
    guard listeners[number]?.queue.isEmpty == false else { return nil }
    return listeners[number]?.queue.removeFirst()
  }

  mutating func closeListener(_ number: Int) {
    guard let listener = listeners.removeValue(forKey: number) else { return }
    record(.listenerClosed, address: listener.address)
    for link in listener.queue { reset(EndName(link: link, side: .acceptor)) }
  }

  // MARK: Addresses

  /// The listener that an address leads to: one for it alone, or one for all addresses of its port.
  private func listener(at address: SocketAddress) -> NetworkListener? {
    let found = listeners.values.filter { $0.address == address || $0.address.covers(address) }
    return found.first { $0.address == address } ?? found.min { $0.number < $1.number }
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

  /// Where a connection comes from: the loopback address towards itself, else the loop's own one
  /// (RFC 5737 and RFC 3849 keep these addresses free).
  private mutating func localAddress(
    of loop: Int,
    towards address: SocketAddress
  ) -> SocketAddress? {
    switch address.storage {
    case .ipv4(let host, _):
      let port = takePort()
      let own = host >> 24 == 127 ? 0x7F00_0001 : 0xC000_0200 | UInt32(loop + 1) & 0xFF
      return SocketAddress(.ipv4(own, port: port))
    case .ipv6(let upper, let lower, _, let scope):
      let isLoopback = upper == 0 && lower == 1
      let port = takePort()
      return SocketAddress(
        .ipv6(
          upper: isLoopback ? 0 : 0x2001_0DB8_0000_0000,
          lower: isLoopback ? 1 : UInt64(loop + 1),
          port: port,
          scope: scope
        )
      )
    case .unix:
      return .unix(path: "")
    }
  }
}

/// The system's number for what went wrong.
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

  /// Whether this is the address for all hosts, with the port of `other`.
  func covers(_ other: SocketAddress) -> Bool {
    switch (storage, other.storage) {
    case (.ipv4(0, let port), .ipv4(_, let otherPort)): port == otherPort
    case (.ipv6(0, 0, let port, _), .ipv6(_, _, let otherPort, _)): port == otherPort
    default: false
    }
  }
}
