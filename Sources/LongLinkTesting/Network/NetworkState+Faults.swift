// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

// What can be done to one link.
extension NetworkState {
  /// Both ends hear at once that the connection is lost.
  mutating func lose(_ number: Int) {
    guard let link = links[number] else { return }
    record(.linkLost, link.initiator.name)
    for end in [link.initiator, link.acceptor] {
      if let end, end.isOpen, !end.isBroken { fail(end, ECONNRESET) }
    }
  }

  /// One end gets a reset that the other one has not sent, and hears nothing of.
  mutating func injectReset(from name: EndName) {
    guard let end = end(name), end.phase == .connected, self.end(name.other) != nil else { return }
    record(.resetInjected, name)
    send(.reset, from: end)
  }

  /// From now on nothing that this end sends arrives.
  mutating func silence(_ name: EndName) {
    guard let end = end(name), !end.output.isSilent else { return }
    record(.silenced, name)
    end.output.isSilent = true
  }

  /// Lets arrive what was lost, as the sender tries again, and all that follows.
  mutating func restore(_ name: EndName) {
    guard let end = end(name), end.output.isSilent else { return }
    record(.restored, name)
    end.output.isSilent = false
    resendHeld(name)
  }

  /// Nothing that this end writes is taken.
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

  /// The owner of this end does not get to read what arrives.
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

  /// Ends whatever lasts, or is still to come: on links, between machines and on them.
  mutating func heal() {
    conditions.connects = .normal
    conditions.connectsByAddress = [:]
    for machine in machines.indices { resume(machine) }
    for number in partitions.numbers { endPartition(number) }
    for number in links.keys.sorted() {
      for side in [Side.initiator, .acceptor] {
        let name = EndName(link: number, side: side)
        restore(name)
        unclog(name)
        resumeReading(name)
        end(name)?.output.flips = []
      }
    }
  }
}
