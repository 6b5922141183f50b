// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
internal import LongLinkCore
package import LongLinkTransport

/// The names and addresses of a simulated network: who listens where, and what is free.
///
/// No two listeners have overlapping addresses.
struct AddressBook {
  /// The result of looking a name up, and the time that it takes.
  struct HostRecord {
    var result: Result<[SocketAddress], ResolveError>
    var delay: Int64
  }

  /// The first dynamic port (RFC 6335, section 6).
  static let firstPort: UInt16 = 49_152

  var hosts: [String: HostRecord] = [:]
  var listeners: [Int: NetworkListener] = [:]
  private var listenersMade = 0
  private var nextPort = AddressBook.firstPort
  /// The last machine that listened at each address.
  private var machinesByAddress: [SocketAddress: Int] = [:]

  // MARK: Listeners

  mutating func listen(
    on loop: Int,
    of machine: Int,
    at address: SocketAddress,
    backlog: Int
  ) throws(SimulatedErrno) -> NetworkListener {
    var address = address
    if address.port == 0 {
      address = try withFreePort(address)
    } else if isTaken(address) {
      throw SimulatedErrno(EADDRINUSE)
    }
    listenersMade += 1
    let listener = NetworkListener(
      number: listenersMade,
      machine: machine,
      loop: loop,
      address: address,
      backlog: max(backlog, 1)
    )
    listeners[listener.number] = listener
    machinesByAddress[address] = machine
    return listener
  }

  /// The numbers of a machine's listeners, in the order in which they were made.
  func listeners(of machine: Int) -> [Int] {
    listeners.keys.sorted().filter { listeners[$0]?.machine == machine }
  }

  /// Removes the first link that waits at a listener, and returns its number; nil if none waits.
  mutating func accept(_ number: Int) -> Int? {
    guard listeners[number]?.queue.isEmpty == false else { return nil }
    return listeners[number]?.queue.removeFirst()
  }

  // MARK: Addresses

  /// The listener for an address: one at exactly this address, or one at all addresses of the port.
  func listener(at address: SocketAddress) -> NetworkListener? {
    let found = listeners.values.filter { $0.address == address || $0.address.covers(address) }
    return found.first { $0.address == address } ?? found.min { $0.number < $1.number }
  }

  /// The machine that is reached at an address; nil if none has ever listened there.
  func machine(at address: SocketAddress) -> Int? {
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
  ) throws(SimulatedErrno) -> SocketAddress {
    for _ in Self.firstPort ... .max {
      let candidate = address.withPort(takePort())
      if !isTaken(candidate) { return candidate }
    }
    throw SimulatedErrno(EADDRINUSE)
  }

  private mutating func takePort() -> UInt16 {
    let port = nextPort
    nextPort = port == .max ? Self.firstPort : port + 1
    return port
  }

  /// The source address of a connection. For a loopback destination, it is the loopback address;
  /// otherwise an address of the machine, from a range reserved by RFC 2544 or RFC 3849.
  mutating func localAddress(
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

  // MARK: Names

  /// The result and delay of a look-up. The addresses get the port.
  func lookUp(_ host: String, port: UInt16) -> HostRecord {
    var record = hosts[host] ?? Self.unknown(host)
    record.result = record.result.map { $0.map { $0.withPort(port) } }
    return record
  }

  /// The record of a name that the test has not set: `localhost`, or an unknown name.
  private static func unknown(_ host: String) -> HostRecord {
    guard host == "localhost" else {
      let error = ResolveError(
        host: host,
        reason: "the name is not known in the simulation",
        code: EAI_NONAME
      )
      return HostRecord(result: .failure(error), delay: 1_000_000)
    }
    return HostRecord(result: .success([.ipv4(127, 0, 0, 1, port: 0)]), delay: 0)
  }
}

/// The system's number for an error that the simulated network reports.
struct SimulatedErrno: Error {
  let code: CInt

  init(_ code: CInt) {
    self.code = code
  }
}

extension SocketAddress {
  package func withPort(_ port: UInt16) -> SocketAddress {
    switch storage {
    case .ipv4(let host, _): SocketAddress(.ipv4(host, port: port))
    case .ipv6(let upper, let lower, _, let scope):
      SocketAddress(.ipv6(upper: upper, lower: lower, port: port, scope: scope))
    case .unix: self
    }
  }

  /// The wildcard address (0.0.0.0 or ::) with the same port.
  var forAllHosts: SocketAddress {
    switch storage {
    case .ipv4(_, let port): SocketAddress(.ipv4(0, port: port))
    case .ipv6(_, _, let port, _): SocketAddress(.ipv6(upper: 0, lower: 0, port: port, scope: 0))
    case .unix: self
    }
  }

  /// Whether this is the wildcard address (0.0.0.0 or ::) for the port of `other`.
  func covers(_ other: SocketAddress) -> Bool {
    switch (storage, other.storage) {
    case (.ipv4(0, let port), .ipv4(_, let otherPort)): port == otherPort
    case (.ipv6(0, 0, let port, _), .ipv6(_, _, let otherPort, _)): port == otherPort
    default: false
    }
  }
}
