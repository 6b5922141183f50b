// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
internal import LongLinkCore
package import LongLinkTransport

// The faults of links.
extension NetworkState {
  /// Fails both ends of a link immediately, with a reset.
  mutating func lose(_ number: Int) {
    guard let link = links[number] else { return }
    record(.linkLost, link.initiator.name)
    for end in [link.initiator, link.acceptor] {
      if let end, end.isOpen, !end.isBroken { fail(end, ECONNRESET) }
    }
  }

  /// Breaks the links to these addresses whose server's end has failed, as TCP's keep-alive would.
  package mutating func loseForgotten(to addresses: [SocketAddress]) {
    let forgotten = links.filter { _, link in
      addresses.contains(link.destination) && link.acceptor?.isBroken == true
    }
    for number in forgotten.keys.sorted() { lose(number) }
  }

  /// Sends a reset in the name of one end, whose owner is not notified.
  mutating func injectReset(from name: EndName) {
    guard let end = end(name), end.phase == .connected, self.end(name.other) != nil else { return }
    record(.resetInjected, name)
    send(.reset, from: end)
  }

  /// Holds back all packets that this end sends from now on.
  mutating func silence(_ name: EndName) {
    guard let end = end(name), !end.output.isSilent else { return }
    record(.silenced, name)
    end.output.isSilent = true
  }

  /// Ends a silence. The held packets are sent again now, as if the sender had retransmitted them.
  mutating func restore(_ name: EndName) {
    guard let end = end(name), end.output.isSilent else { return }
    record(.restored, name)
    end.output.isSilent = false
    resendHeld(name)
  }

  /// Makes writes of this end take nothing.
  mutating func clog(_ name: EndName) {
    guard let end = end(name), !end.output.isClogged else { return }
    record(.clogged, name)
    end.output.isClogged = true
  }

  mutating func unclog(_ name: EndName) {
    guard let end = end(name), end.output.isClogged else { return }
    record(.unclogged, name)
    end.output.isClogged = false
    mark(.end(name))
  }

  /// Keeps the owner of this end from reading.
  mutating func stopReading(_ name: EndName) {
    guard let end = end(name), end.isOpen, !end.readsNothing else { return }
    record(.readingStopped, name)
    end.readsNothing = true
  }

  mutating func resumeReading(_ name: EndName) {
    guard let end = end(name), end.readsNothing else { return }
    record(.readingResumed, name)
    end.readsNothing = false
    mark(.end(name))
  }

  /// Ends all lasting or pending faults of links, between machines and of machines.
  mutating func heal() {
    conditions.connects = .normal
    conditions.connectsByAddress = [:]
    for machine in machines.indices { resume(machine) }
    for number in partitions.numbers { endPartition(number) }
    for number in links.keys.sorted() {
      for side in [Side.initiator, .acceptor] {
        links[number]?.change(side, in: &self) { state, name in
          state.restore(name)
          state.unclog(name)
          state.resumeReading(name)
          state.end(name)?.output.flips = []
        }
      }
    }
  }
}
