// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
@_spi(Loop) import LongLinkTransport

/// A proxy's connection, on its loop, until the proxy's header has named the client.
///
/// It reads the header and not a byte more: what follows belongs to the encryption or to frames.
final class ProxyGreeting: TransportHandler, TimerHandler {
  /// The end of the wait for a header.
  enum Outcome {
    case named(SocketAddress?)
    /// The proxy broke the protocol, or was too slow.
    case failed(String)
    /// The connection ended without sending a byte, as a port check does.
    case ended
  }

  let admission: Admission
  private let transport: any Transport
  private let loop: EventLoop
  private var header = ProxyHeader()
  private var input = ByteQueue()
  private var timer: LoopTimer?
  private var completion: ((Outcome) -> Void)?

  /// Starts to read. `completion` is called once; the transport is then no longer watched, and not
  /// closed.
  init(
    of admission: Admission, _ transport: any Transport, on loop: EventLoop,
    until deadline: LinkInstant, _ completion: @escaping (Outcome) -> Void
  ) {
    self.admission = admission
    self.transport = transport
    self.loop = loop
    self.completion = completion
    timer = loop.schedule(at: deadline, self, token: 0)
    transport.attach(self, token: 0)
    transport.setInterest(.read)
  }

  func transportReady(_ readiness: Readiness, token: UInt64) {
    guard completion != nil, readiness.contains(.read) else { return }
    do throws(SocketError) {
      while let outcome = try read() {
        if case .bytes = outcome { continue }
        return finish(header.isEmpty ? .ended : .failed("the connection ended within the header"))
      }
    } catch {
      finish(header.isEmpty ? .ended : .failed(error.reason))
    }
  }

  /// Reads once; nil if nothing has arrived, or if the header has been decided.
  private func read() throws(SocketError) -> ReadOutcome? {
    guard completion != nil else { return nil }
    let outcome = try input.append(capacity: header.missing) { (span) throws(SocketError) in
      try transport.read(into: &span)
    }
    switch outcome {
    case .bytes: take()
    case .wouldBlock: return nil
    case .end: break
    }
    return outcome
  }

  private func take() {
    defer { input.removeAll() }
    let positions = input.position..<input.position + input.count
    do throws(ProxyHeader.Failure) {
      let source = try input.withBytes(positions) { (bytes) throws(ProxyHeader.Failure) in
        try header.take(bytes)
      }
      switch source {
      case .proxy: finish(.named(nil))
      case .client(let address): finish(.named(address))
      case nil: break
      }
    } catch {
      finish(.failed(error.rawValue))
    }
  }

  func timerFired(token: UInt64) {
    timer = nil
    finish(.failed("the header has not come in time"))
  }

  /// Ends the wait without calling `completion`, and closes the transport.
  func abandon() {
    guard completion != nil else { return }
    completion = nil
    if let timer { loop.cancel(timer) }
    transport.close()
  }

  private func finish(_ outcome: Outcome) {
    guard let completion else { return }
    self.completion = nil
    if let timer { loop.cancel(timer) }
    timer = nil
    transport.setInterest([])
    completion(outcome)
  }
}
