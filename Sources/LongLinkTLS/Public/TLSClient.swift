// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkTLS
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport
internal import Synchronization

/// Secures the connections of a client.
final class TLSClient: ClientSecurityProvider, TLSTransportOwner {
  /// The least time between two looks at the files, in nanoseconds.
  private static let lookInterval: Int64 = 10_000_000_000

  private let configuration: TLSClientConfiguration
  private let plan: TLSPlan
  private let paths: Set<String>
  private let state: Mutex<State>
  private let lingering = Mutex(LingerLimit())

  private struct State {
    var context: TLSContext
    /// The SHA-256 of each file that is in use.
    var digests: [String: [UInt8]]
    var fileStates: TLSFileStates
    var nextLook = LinkInstant.distantPast
    var isLooking = false
    var tickets = TLSTicketStore()
    /// The number of replacements of the context: tickets from before the last one are not kept.
    var generation = 0
  }

  init(_ configuration: TLSClientConfiguration) throws(LongLinkError) {
    self.configuration = configuration
    plan = try configuration.plan()
    paths = Set(plan.sources.compactMap(\.source.path))
    let states = TLSFileStates.now(paths)
    let files = try TLSFiles(plan.sources)
    state = Mutex(
      State(
        context: try plan.context(files), digests: files.digests,
        fileStates: TLSFileStates(states)))
  }

  var verifiesPeers: Bool { configuration.verification == .full }

  func secure(_ transport: any Transport, host: String?, on loop: EventLoop) -> any Transport {
    lookAtFiles(on: loop)
    let host = configuration.serverName ?? host
    let name = host.flatMap(TLSName.init)
    let key = "\(name?.text ?? "") \(transport.peerAddress?.port ?? 0)"
    let now = loop.driver.unixTime
    let (context, ticket, generation) = state.withLock { state in
      (
        state.context, configuration.resumes ? state.tickets.take(key, at: now) : nil,
        state.generation
      )
    }
    var engine = TLSEngine(context, now: now)
    let failure = setName(name, of: host, on: &engine)
    if let ticket { engine?.setSession(ticket.session) }
    let side = TLSSide(
      isServer: false, name: name?.text, ticketKey: key, generation: generation,
      ticketExpiry: ticket?.expiry ?? .max)
    let secured = TLSTransport(over: transport, engine, side, owner: self, on: loop)
    if let failure { _ = secured.fail(failure, "secure") }
    return secured
  }

  /// Sets the name that the server's certificate must have. Returns why that is impossible, if
  /// servers are verified.
  private func setName(
    _ name: TLSName?, of host: String?, on engine: inout TLSEngine?
  ) -> SecurityFailure? {
    if let name, engine?.setName(name.text, isAddress: name.isAddress) ?? true { return nil }
    guard verifiesPeers else { return nil }
    guard let host else {
      return SecurityFailure(
        .nameMismatch,
        "a Unix socket has no name that a certificate could be for; set `serverName`")
    }
    return SecurityFailure(
      .nameMismatch,
      """
      "\(PeerText(host))" is no name that a certificate could be for; connect by another one, or \
      set `serverName`
      """)
  }

  // MARK: Transports

  func transportOpened(_ transport: TLSTransport) {
    guard transport.engine?.hasMissedPin == true, let audit = configuration.pins?.audit else {
      return
    }
    audit(
      SecurityFailure(
        .pinMismatch,
        """
        the chain of the certificate of \(transport.side.name ?? "the server") has none of the \
        pinned keys; the connection goes on, because the pins are only audited
        """, certificate: transport.engine?.peer ?? nil))
  }

  func transport(_ transport: TLSTransport, received session: [UInt8]) {
    // A resumed connection shows no chain, so its pins could not be checked.
    guard configuration.resumes, transport.engine?.hasMissedPin != true else { return }
    let expiry = min(transport.engine?.expiry ?? .max, transport.side.ticketExpiry)
    state.withLock { state in
      guard transport.side.generation == state.generation else { return }
      state.tickets.add(
        TLSTicketStore.Ticket(session: session, expiry: expiry), for: transport.side.ticketKey)
    }
  }

  func mayLinger() -> Bool { lingering.withLock { $0.begin() } }

  func lingeringEnded() { lingering.withLock { $0.end() } }

  // MARK: Files

  /// Looks at the files off the loop, if the last look is long enough ago.
  private func lookAtFiles(on loop: EventLoop) {
    guard !paths.isEmpty else { return }
    let isDue = state.withLock { state in
      guard !state.isLooking, loop.now >= state.nextLook else { return false }
      // The first connection needs no look: the files were read just before.
      defer { state.nextLook = loop.now + TLSClient.lookInterval }
      guard state.nextLook != .distantPast else { return false }
      state.isLooking = true
      return true
    }
    if isDue { loop.offload { [self] in look() } }
  }

  private func look() {
    let states = TLSFileStates.now(paths)
    let (isDue, former) = state.withLock { ($0.fileStates.isDue(states), $0.digests) }
    guard isDue else { return state.withLock { $0.isLooking = false } }
    do throws(LongLinkError) {
      let files = try TLSFiles(plan.sources)
      let digests = files.digests
      let context = digests == former ? nil : try plan.context(files)
      state.withLock { state in
        state.fileStates.use(states)
        state.isLooking = false
        guard let context else { return }
        state.context = context
        state.digests = digests
        state.tickets = TLSTicketStore()
        state.generation += 1
      }
    } catch {
      let isNews = state.withLock { state in
        state.isLooking = false
        return state.fileStates.fail(states, error)
      }
      if isNews { configuration.onReloadFailure?(error) }
    }
  }
}
