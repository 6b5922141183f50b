// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkTLS
public import LongLinkCore
public import LongLinkDriver
@_spi(Loop) package import LongLinkTransport
internal import Synchronization

/// The certificates and keys of one or several servers, which reads their files again when they
/// change.
///
/// Pass it to `ServerSecurity.tls`. While a server runs, it looks at the files every 10 s. If one
/// has changed, it reads all of them, and new connections use them once everything fits together:
/// the chain can be read, the key belongs to it, and a new certificate is valid now. Otherwise
/// the old ones stay in use, the server's log has one error for each change, `status` has the
/// reason, and the server tries again every 10 s.
///
/// A server starts even if a certificate has expired or is not valid yet, so that a restart at
/// night does not stop it. Its log then has an error at the start and once a day; also from two
/// weeks before a certificate expires.
///
/// It can be used from any thread.
public final class TLSServer: Sendable {
  /// The certificates in use, and what happened to their files.
  public struct Status: Equatable, Sendable {
    /// The certificates in use, in the order of the configuration.
    public var certificates: [PeerCertificate]
    /// For each certificate, the earliest expiry in its chain, in seconds since 1970.
    public var expiries: [Int64]
    /// How often changed files were put into use.
    public var reloads = 0
    /// When changed files were last put into use, in seconds since 1970; nil if they never were.
    public var lastReload: Int64?
    /// How often changed files could not be used. The checks every 10 s count a change only once;
    /// each call of `reload()` counts.
    public var failures = 0
    /// When changed files last could not be used, in seconds since 1970; nil if that never
    /// happened.
    public var lastFailure: Int64?
    /// Why changed files cannot be used; nil if the files are in use.
    public var failure: LongLinkError?

    /// The status at the start: the certificates and their expiries, without reloads or failures.
    init(_ context: TLSContext) {
      let identities = (0..<context.identityCount).map { context.identity($0) }
      certificates = identities.map(\.certificate)
      expiries = identities.map(\.expiry)
    }
  }

  let configuration: TLSServerConfiguration
  let plan: TLSPlan
  /// The sources of the plan and of the ticket keys, each with its field.
  let sources: [(field: String, source: TLSSource)]
  let paths: Set<String>
  let keys: TLSTicketKeys?
  let state: Mutex<State>
  private let lingering = Mutex(LingerLimit())
  /// Held while the files are looked at.
  let looking = Mutex(())

  struct State {
    var context: TLSContext
    /// The SHA-256 of each file that is in use.
    var digests: [String: [UInt8]]
    var fileStates: TLSFileStates
    var status: Status
    /// The running servers that use this object, in the order of their starts.
    var watches: [TLSWatch.Entry] = []
    /// The ticket keys that this process makes, if the configuration says so.
    var rotation = TLSRotation()
    /// For each certificate, the day since 1970 of the last warning about it.
    var warnings: [Int64] = []
  }

  /// Reads the files of a configuration, and blocks the calling thread meanwhile.
  ///
  /// Throws `invalidConfiguration`, naming the field, the file and the reason.
  public init(_ configuration: TLSServerConfiguration) throws(LongLinkError) {
    self.configuration = configuration
    plan = try configuration.plan()
    var sources = plan.sources
    if case .keys(let source) = configuration.tickets {
      sources.append((TLSServer.ticketField, source))
    }
    self.sources = sources
    paths = Set(sources.compactMap(\.source.path))
    let states = TLSFileStates.now(paths)
    let files = try TLSFiles(sources)
    var rotation = TLSRotation()
    switch configuration.tickets {
    case .none: keys = nil
    case .rotating:
      keys = TLSTicketKeys()
      rotation.begin()
      keys?.set(rotation.keys)
    case .keys(let source):
      keys = TLSTicketKeys()
      keys?.set(try TLSServer.ticketKeys(files.bytes(of: source), source))
    }
    let context = try plan.context(files, keys: keys)
    state = Mutex(
      State(
        context: context, digests: files.digests, fileStates: TLSFileStates(states),
        status: Status(context), rotation: rotation))
  }

  static let ticketField = "security.tickets"

  /// Splits the bytes of a source into ticket keys.
  static func ticketKeys(
    _ bytes: [UInt8], _ source: TLSSource
  ) throws(LongLinkError) -> [[UInt8]] {
    let size = TLSTicketKeys.size
    guard !bytes.isEmpty, bytes.count % size == 0, bytes.count <= size * TLSTicketKeys.most else {
      throw .configuration(
        ticketField,
        "\(source.text): it has \(bytes.count) bytes, and not 1 to 16 keys of 80 bytes each")
    }
    return stride(from: 0, to: bytes.count, by: size).map { Array(bytes[$0..<$0 + size]) }
  }

  /// The certificates in use, and what happened to their files.
  public var status: Status { state.withLock { $0.status } }

  /// Reads the files now, and returns once they are in use or could not be used: see `status`.
  ///
  /// A running server looks at them every 10 s by itself; call this at a signal, for example. Files
  /// that could not be used before are tried again. Without a running server it blocks the calling
  /// thread, and judges dates by the clock of this machine.
  public func reload() async {
    guard let watch = state.withLock({ $0.watches.first }) else { return lookNow(at: nil) }
    await watch.loop.offloading { [self] in lookNow(at: watch) }
  }
}

extension TLSServer: ServerSecurityProvider, TLSTransportOwner {
  /// The number of tickets after a full handshake: a client may connect to two addresses at once
  /// next time.
  private static let tickets: CInt = 2

  package func secure(_ transport: any Transport, on loop: EventLoop) -> any Transport {
    let context = state.withLock { $0.context }
    let engine = TLSEngine(context, now: loop.driver.unixTime)
    let side = TLSSide(isServer: true, tickets: keys == nil ? 0 : TLSServer.tickets)
    return TLSTransport(over: transport, engine, side, owner: self, on: loop)
  }

  package var versions: String { plan.allowsOldVersion ? "1.2, 1.3" : "1.3" }

  package func serverStarted(
    _ user: ObjectIdentifier, on loop: EventLoop, _ log: @escaping SecurityLog,
    replaced: @escaping @Sendable () -> Void
  ) {
    let watch = TLSWatch(self, of: user, on: loop)
    let entry = TLSWatch.Entry(
      user: user, watch: LoopBound(watch, on: loop), loop: loop, log: log, replaced: replaced)
    state.withLock { $0.watches.append(entry) }
    warnAtStart(entry)
    watch.start()
  }

  package func serverStopped(_ user: ObjectIdentifier, on loop: EventLoop) {
    let stopped = state.withLock { state -> TLSWatch.Entry? in
      guard let index = state.watches.firstIndex(where: { $0.user == user }) else { return nil }
      return state.watches.remove(at: index)
    }
    stopped?.watch.value.stop()
  }

  var verifiesPeers: Bool { plan.clients != CLL_CLIENTS_NONE }

  func transportOpened(_: TLSTransport) {}

  func transport(_: TLSTransport, received _: [UInt8]) {}

  func mayLinger() -> Bool { lingering.withLock { $0.begin() } }

  func lingeringEnded() { lingering.withLock { $0.end() } }
}
