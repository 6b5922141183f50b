// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTesting
@_spi(Loop) internal import LongLinkTransport

/// An event of a secured stream that an oracle hears of: its plain bytes that were written, or the
/// number of those that were read.
struct PlainBytes {
  enum Event {
    case secured
    /// A write begins. Until it ends, no encrypted bytes of earlier writes are written.
    case writing
    case written([UInt8])
    case read(Int)
  }

  var name: EndName
  var machine: Int
  var time: LinkInstant
  var event: Event
}

/// A secured stream of a simulation, whose plain bytes are reported to an oracle.
final class WatchedTransport: Transport {
  typealias Report = @Sendable (PlainBytes) -> Void

  private let secured: any Transport
  private let end: (name: EndName, machine: Int, network: SharedNetwork)
  private let report: Report

  /// Secures `stream`, and reports the plain bytes to an oracle if the stream is in a simulation.
  static func watch(
    _ stream: any Transport, _ report: @escaping Report,
    _ secure: (any Transport) -> any Transport
  ) -> any Transport {
    guard let end = SharedNetwork.end(of: stream) else { return secure(stream) }
    let watched = WatchedTransport(secure(stream), end, report)
    watched.tell(.secured)
    return watched
  }

  private init(
    _ secured: any Transport, _ end: (name: EndName, machine: Int, network: SharedNetwork),
    _ report: @escaping Report
  ) {
    self.secured = secured
    self.end = end
    self.report = report
  }

  private func tell(_ event: PlainBytes.Event) {
    report(PlainBytes(name: end.name, machine: end.machine, time: end.network.now, event: event))
  }

  // MARK: Bytes

  func read(into buffer: inout OutputRawSpan) throws(SocketError) -> ReadOutcome {
    let outcome = try secured.read(into: &buffer)
    if case .bytes(let count) = outcome { tell(.read(count)) }
    return outcome
  }

  func write(_ bytes: RawSpan) throws(SocketError) -> Int {
    tell(.writing)
    var count = 0
    defer { tell(.written([UInt8](decoding: bytes.extracting(0..<count)))) }
    count = try secured.write(bytes)
    return count
  }

  // MARK: The rest

  var localAddress: SocketAddress? { secured.localAddress }
  var peerAddress: SocketAddress? { secured.peerAddress }
  var layer: (any TransportLayer)? { secured.layer }
  var unacknowledgedBytes: Int { secured.unacknowledgedBytes }
  var hasUnreadBytes: Bool { secured.hasUnreadBytes }

  func attach(_ handler: any TransportHandler, token: UInt64) {
    secured.attach(handler, token: token)
  }

  func setInterest(_ interest: Readiness) { secured.setInterest(interest) }

  func finishConnecting() throws(SocketError) -> Bool { try secured.finishConnecting() }

  func shutDownWriting() { secured.shutDownWriting() }

  func close() { secured.close() }

  func reset() { secured.reset() }
}

/// A client's security that reports the plain bytes of its streams to an oracle.
struct WatchedClientSecurity: ClientSecurityProvider {
  let provider: any ClientSecurityProvider
  let report: WatchedTransport.Report

  func secure(_ stream: any Transport, host: String?, on loop: EventLoop) -> any Transport {
    WatchedTransport.watch(stream, report) { provider.secure($0, host: host, on: loop) }
  }
}

/// A server's security that reports the plain bytes of its streams to an oracle.
struct WatchedServerSecurity: ServerSecurityProvider {
  let provider: any ServerSecurityProvider
  let report: WatchedTransport.Report

  func secure(_ stream: any Transport, on loop: EventLoop) -> any Transport {
    WatchedTransport.watch(stream, report) { provider.secure($0, on: loop) }
  }

  func serverStarted(
    _ server: ObjectIdentifier, on loop: EventLoop, _ log: @escaping SecurityLog,
    replaced: @escaping @Sendable () -> Void
  ) {
    provider.serverStarted(server, on: loop, log, replaced: replaced)
  }

  func serverStopped(_ server: ObjectIdentifier, on loop: EventLoop) {
    provider.serverStopped(server, on: loop)
  }
}
