// SPDX-License-Identifier: Apache-2.0

public import LongLinkTransport

/// One connection of the simulated network, to be watched, shaped and broken. From any thread.
///
/// What is done to a link that is closed does nothing.
public struct SimulatedLink: Sendable {
  /// Which bytes are meant: the connecting side is the client.
  public enum Direction: Hashable, Sendable {
    /// What the client writes.
    case toServer
    /// What the server writes.
    case toClient
    /// What either writes.
    case both
  }

  /// Counts the links of a simulation from 1.
  public let number: Int
  let networkState: SharedNetwork

  /// The address that was connected to; nil once the link is closed.
  public var destination: SocketAddress? { networkState { $0.links[number]?.destination } }

  /// Whether one of its sides has it open.
  public var isOpen: Bool { networkState { $0.links[number] != nil } }

  /// The machine that has connected; nil once the link is closed.
  public var client: SimulatedMachine? { machine(of: .initiator) }

  /// The machine that has accepted; nil until a listener is reached, and once the link is closed.
  public var server: SimulatedMachine? { machine(of: .acceptor) }

  /// How many bytes were written in a direction since the link was made; 0 once it is closed.
  public func bytesWritten(_ direction: Direction = .both) -> Int {
    networkState { networkState in
      names(direction).reduce(0) { $0 + (networkState.end($1)?.output.written ?? 0) }
    }
  }

  /// Says how bytes travel that are written from now on.
  public func setConditions(_ conditions: LinkConditions, _ direction: Direction = .both) {
    networkState { networkState in
      for name in names(direction) {
        networkState.end(name)?.output.conditions = conditions
        networkState.mark(.end(name))
      }
    }
  }

  /// Loses the link: both sides hear of a reset (`ECONNRESET`) after what has reached them already.
  public func lose() {
    networkState { $0.lose(number) }
  }

  /// Makes a reset arrive that nobody has sent, as from a middlebox that has lost its state.
  ///
  /// `direction` is the way that it travels: `.toClient` resets the client. The other side hears
  /// of it when it writes again.
  public func reset(_ direction: Direction) {
    change(direction) { $0.injectReset(from: $1) }
  }

  /// Ends one direction: its reader gets the end of the stream, and its writer can write no more
  /// (`EPIPE`). The other direction goes on.
  public func halfClose(_ direction: Direction) {
    change(direction) { $0.shutDownWriting($1) }
  }

  // MARK: What lasts

  /// Makes a link half-open: what is written from now on never arrives, ends and resets included,
  /// and nobody is told. The writer's window fills.
  ///
  /// `duration` is how long it lasts; nil, the default, is until `restore`.
  public func silence(_ direction: Direction = .both, for duration: Duration? = nil) {
    change(direction) { $0.silence($1) }
    changeLater(duration, direction) { $0.restore($1) }
  }

  /// Ends a silence: what was written meanwhile arrives, as if it were sent again, and what
  /// follows.
  public func restore(_ direction: Direction = .both) {
    change(direction) { $0.restore($1) }
  }

  /// Clogs a direction: nothing that is written is taken, as when the peer's window is zero.
  ///
  /// What was taken before arrives. `duration` is how long it lasts; nil, the default, is until
  /// `unclog`.
  public func clog(_ direction: Direction = .both, for duration: Duration? = nil) {
    change(direction) { $0.clog($1) }
    changeLater(duration, direction) { $0.unclog($1) }
  }

  /// Ends a clog.
  public func unclog(_ direction: Direction = .both) {
    change(direction) { $0.unclog($1) }
  }

  /// Keeps the reader of a direction from reading: what arrives waits, until the window is full.
  ///
  /// It does not hear of an end of the stream either, but of a reset. `duration` is how long it
  /// lasts; nil, the default, is until `resumeReading`.
  public func stopReading(_ direction: Direction = .both, for duration: Duration? = nil) {
    change(direction) { $0.stopReading($1.other) }
    changeLater(duration, direction) { $0.resumeReading($1.other) }
  }

  /// Lets the reader of a direction read again.
  public func resumeReading(_ direction: Direction = .both) {
    change(direction) { $0.resumeReading($1.other) }
  }

  // MARK: Bits

  /// Flips one bit (0 to 7, 0 the lowest) of a byte that will be written in a direction.
  ///
  /// `offset` counts the direction's bytes from 0. One that was written before stays as it was.
  public func flipBit(_ bit: Int, ofByte offset: Int, _ direction: Direction) {
    precondition((0...7).contains(bit), "a byte has the bits 0 to 7")
    networkState { networkState in
      for name in names(direction) {
        networkState.end(name)?.output.flips.append(.init(offset: offset, bit: bit))
      }
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

  private func change(_ direction: Direction, _ body: (inout NetworkState, EndName) -> Void) {
    networkState { networkState in
      for name in names(direction) { body(&networkState, name) }
    }
  }

  private func changeLater(
    _ delay: Duration?,
    _ direction: Direction,
    _ body: @escaping @Sendable (inout NetworkState, EndName) -> Void
  ) {
    let names = names(direction)
    networkState.after(delay) { networkState in
      for name in names { body(&networkState, name) }
    }
  }

  private func names(_ direction: Direction) -> [EndName] {
    let client = EndName(link: number, side: .initiator)
    return switch direction {
    case .toServer: [client]
    case .toClient: [client.other]
    case .both: [client, client.other]
    }
  }
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
