// SPDX-License-Identifier: Apache-2.0

public import LongLinkTransport

/// One connection of the simulated network, which a test can watch, shape and break.
///
/// Any thread may use it. While a link is connecting, it has no server's side: what is changed on
/// that side takes effect when the link reaches a listener. A link is closed when both sides have
/// closed it; then its methods do nothing.
public struct SimulatedLink: Sendable {
  /// A direction, or both. The connecting side is the client.
  public enum Direction: Hashable, Sendable {
    /// From the client to the server.
    case toServer
    /// From the server to the client.
    case toClient
    /// Both directions.
    case both
  }

  /// The number of the link in its simulation, from 1.
  public let number: Int
  let networkState: SharedNetwork

  /// The address that the client connected to; nil once the link is closed.
  public var destination: SocketAddress? { networkState { $0.links[number]?.destination } }

  /// Whether at least one side is open.
  public var isOpen: Bool { networkState { $0.links[number] != nil } }

  /// The client's machine; nil once the link is closed.
  public var client: SimulatedMachine? { machine(of: .initiator) }

  /// The server's machine; nil until a listener is reached, and once the link is closed.
  public var server: SimulatedMachine? { machine(of: .acceptor) }

  /// The number of bytes written in a direction, or the sum of both; 0 once the link is closed.
  public func bytesWritten(_ direction: Direction = .both) -> Int {
    networkState { networkState in
      writers(direction).reduce(0) { $0 + (networkState.end($1)?.output.written ?? 0) }
    }
  }

  /// Sets the conditions for bytes written from now on, by default in both directions.
  public func setConditions(_ conditions: LinkConditions, _ direction: Direction = .both) {
    change(writers(direction)) { networkState, name in
      networkState.end(name)?.output.conditions = conditions
      networkState.mark(.end(name))
    }
  }

  /// Breaks the link immediately: each side can still read the bytes that have arrived, and then
  /// gets a reset (`ECONNRESET`). Bytes in flight are lost.
  public func lose() {
    networkState { $0.lose(number) }
  }

  /// Injects a reset that neither side has sent, like a middlebox that has lost its state.
  ///
  /// `.toClient` resets the client, after the latency of that direction. The other side gets a
  /// reset when it writes again. Does nothing while the link is connecting.
  public func reset(_ direction: Direction) {
    networkState { networkState in
      for name in writers(direction) { networkState.injectReset(from: name) }
    }
  }

  /// Ends one direction: after the latency, its reader gets the end of the stream; its writer gets
  /// `EPIPE` when it writes. The other direction stays open. Does nothing while the link is
  /// connecting.
  public func halfClose(_ direction: Direction) {
    networkState { networkState in
      for name in writers(direction) { networkState.shutDownWriting(name) }
    }
  }

  // MARK: Lasting faults

  /// Makes a link half-open: bytes, ends and resets sent from now on do not arrive, and the
  /// writer's window fills. Neither side is notified. But a client that limits the time for
  /// acknowledgements (`TCP_USER_TIMEOUT`) fails with `ETIMEDOUT` after that time.
  ///
  /// The fault lasts for `duration`, or until `restore` or ``Simulation/heal()``.
  public func silence(_ direction: Direction = .both, for duration: Duration? = nil) {
    change(writers(direction)) { $0.silence($1) }
    change(writers(direction), after: duration) { $0.restore($1) }
  }

  /// Ends a silence. Bytes written during it are sent again now, and arrive after the latency of
  /// the link.
  public func restore(_ direction: Direction = .both) {
    change(writers(direction)) { $0.restore($1) }
  }

  /// Clogs a direction: its writer can write nothing, as if the peer's window were zero.
  ///
  /// Bytes written before still arrive. The fault lasts for `duration`, or until `unclog` or
  /// ``Simulation/heal()``.
  public func clog(_ direction: Direction = .both, for duration: Duration? = nil) {
    change(writers(direction)) { $0.clog($1) }
    change(writers(direction), after: duration) { $0.unclog($1) }
  }

  /// Ends a clog: the writer can write again.
  public func unclog(_ direction: Direction = .both) {
    change(writers(direction)) { $0.unclog($1) }
  }

  /// Keeps the reader of a direction from reading: arriving bytes wait, until the window is full.
  ///
  /// An end of the stream waits too, but a reset is noticed. The fault lasts for `duration`, or
  /// until `resumeReading` or ``Simulation/heal()``.
  public func stopReading(_ direction: Direction = .both, for duration: Duration? = nil) {
    change(readers(direction)) { $0.stopReading($1) }
    change(readers(direction), after: duration) { $0.resumeReading($1) }
  }

  /// Lets the reader of a direction read again, after `stopReading`.
  public func resumeReading(_ direction: Direction = .both) {
    change(readers(direction)) { $0.resumeReading($1) }
  }

  // MARK: Bits

  /// Flips one bit (0 to 7, 0 the lowest) of a byte that will be written in a direction.
  ///
  /// `offset` counts the direction's bytes from 0. Bytes already written do not change. Another
  /// `bit` traps.
  public func flipBit(_ bit: Int, ofByte offset: Int, _ direction: Direction) {
    precondition((0...7).contains(bit), "a byte has the bits 0 to 7")
    change(writers(direction)) { networkState, name in
      networkState.end(name)?.output.flips.append(.init(offset: offset, bit: bit))
    }
  }

  private func machine(of side: Side) -> SimulatedMachine? {
    networkState { networkState in
      networkState.end(EndName(link: number, side: side)).map { end in
        SimulatedMachine(
          index: end.machine, networkState: self.networkState,
          name: networkState.machines[end.machine].name)
      }
    }
  }

  private func change(_ ends: [EndName], _ body: @escaping NetworkLink.Change) {
    networkState { networkState in
      for name in ends { networkState.links[name.link]?.change(name.side, in: &networkState, body) }
    }
  }

  /// Changes ends after a delay; never if `delay` is nil.
  private func change(
    _ ends: [EndName], after delay: Duration?, _ body: @escaping NetworkLink.Change
  ) {
    networkState.after(delay) { networkState in
      for name in ends { networkState.links[name.link]?.change(name.side, in: &networkState, body) }
    }
  }

  /// The ends that write in a direction.
  private func writers(_ direction: Direction) -> [EndName] {
    let client = EndName(link: number, side: .initiator)
    return switch direction {
    case .toServer: [client]
    case .toClient: [client.other]
    case .both: [client, client.other]
    }
  }

  /// The ends that read in a direction.
  private func readers(_ direction: Direction) -> [EndName] { writers(direction).map(\.other) }
}

extension NetworkState {
  func openStreams(loopNames: [String]) -> [String] {
    links.keys.sorted().flatMap { number -> [String] in
      guard let link = links[number] else { return [] }
      return [link.initiator, link.acceptor].compactMap { end in
        guard let end, end.isOpen else { return nil }
        let owner = end.loop.map { "loop \"\(loopNames[$0])\"" } ?? "no loop yet"
        let local = end.local?.description ?? "?"
        let peer = end.peer?.description ?? "?"
        return "link \(number) \(end.name.side), \(owner), from \(local) to \(peer)"
      }
    }
  }
}
