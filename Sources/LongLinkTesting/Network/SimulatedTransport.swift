// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
internal import LongLinkCore
package import LongLinkTransport

/// One end of a link, as a stream of bytes on its loop.
final class SimulatedTransport: Transport {
  let name: EndName
  private let driver: SimulatedDriver
  let networkState: SharedNetwork
  private let loop: EventLoop
  private var interest: Readiness = []
  private var isAttached = false
  private var isOpen = true
  let localAddress: SocketAddress?
  let peerAddress: SocketAddress?

  init(_ name: EndName, driver: SimulatedDriver, loop: EventLoop) {
    self.name = name
    self.driver = driver
    self.loop = loop
    networkState = driver.networkState
    (localAddress, peerAddress) = networkState { ($0.end(name)?.local, $0.end(name)?.peer) }
  }

  /// The machine on which this end of the link is.
  var machine: Int { networkState { [index = driver.index] in $0.loops[index].machine } }

  deinit {
    guard isOpen else { return }
    networkState { [name] in $0.close(name) }
    guard isAttached else { return }
    if loop.isCurrent {
      driver.unregister(.end(name))
    } else {
      loop.execute { [loop, name] in
        (loop.driver as? SimulatedDriver)?.unregister(.end(name))
      }
    }
  }

  func attach(_ handler: any TransportHandler, token: UInt64) {
    requireOpen()
    driver.register(.end(name), handler, token: token)
    isAttached = true
    networkState { [name, interest] in $0.setInterest(interest, of: .end(name)) }
  }

  func setInterest(_ interest: Readiness) {
    requireOpen()
    guard interest != self.interest else { return }
    self.interest = interest
    guard isAttached else { return }
    networkState { [name] in $0.setInterest(interest, of: .end(name)) }
  }

  func finishConnecting() throws(SocketError) -> Bool {
    requireOpen()
    do throws(SimulatedErrno) {
      guard !driver.isCutOff else { throw SimulatedErrno(ENETDOWN) }
      return try networkState { [name] (networkState) throws(SimulatedErrno) in
        try networkState.finishConnecting(name)
      }
    } catch {
      throw SocketError(operation: "connect", errno: error.code, address: peerAddress)
    }
  }

  func read(into buffer: inout OutputRawSpan) throws(SocketError) -> ReadOutcome {
    requireOpen()
    precondition(!buffer.isFull, "a read needs room for at least one byte")
    do throws(SimulatedErrno) {
      guard !driver.isCutOff else { throw SimulatedErrno(ENETDOWN) }
      let count = try networkState { [name] (networkState) throws(SimulatedErrno) in
        try networkState.read(name, into: &buffer)
      }
      guard let count else { return .wouldBlock }
      return count == 0 ? .end : .bytes(count)
    } catch {
      throw SocketError(operation: "read", errno: error.code, address: peerAddress)
    }
  }

  func write(_ bytes: RawSpan) throws(SocketError) -> Int {
    requireOpen()
    do throws(SimulatedErrno) {
      guard !driver.isCutOff else { throw SimulatedErrno(ENETDOWN) }
      return try networkState { [name] (networkState) throws(SimulatedErrno) in
        try networkState.write(name, bytes)
      }
    } catch {
      throw SocketError(operation: "write", errno: error.code, address: peerAddress)
    }
  }

  var unacknowledgedBytes: Int {
    requireOpen()
    return networkState { [name] networkState in
      networkState.end(name).map { $0.output.written - $0.output.arrived } ?? 0
    }
  }

  var hasUnreadBytes: Bool {
    requireOpen()
    return networkState { [name] networkState in
      networkState.end(name).map { !$0.inbox.isEmpty } ?? false
    }
  }

  func shutDownWriting() {
    requireOpen()
    networkState { [name] in $0.shutDownWriting(name) }
  }

  /// Makes failures count as read readiness whatever the interest, as on streams of short links.
  func reportFailure() {
    networkState { [name] in $0.end(name)?.reportsFailure = true }
  }

  func close() {
    release { $0.close($1) }
  }

  func reset() {
    release { $0.reset($1) }
  }

  private func release(_ body: (inout NetworkState, EndName) -> Void) {
    guard isOpen else { return }
    isOpen = false
    if isAttached { driver.unregister(.end(name)) }
    networkState { [name] in body(&$0, name) }
  }

  private func requireOpen() {
    precondition(isOpen, "a closed stream was used")
  }
}

extension SharedNetwork {
  /// Returns the end of the link under a simulated stream, with its machine and network; nil for
  /// any other stream.
  package static func end(
    of stream: any Transport
  ) -> (name: EndName, machine: Int, network: SharedNetwork)? {
    (stream as? SimulatedTransport).map { ($0.name, $0.machine, $0.networkState) }
  }
}
