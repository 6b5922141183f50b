// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport
internal import Synchronization

extension TLSServer {
  /// How long before its expiry a certificate is warned of, in seconds. The log is warned once a
  /// day.
  private static let warningPeriod: Int64 = 14 * 86_400
  private static let day: Int64 = 86_400

  /// What a running server does at its start and every 10 s: replaces ticket keys, warns, looks at
  /// the files. Of several servers that share this `TLSServer`, only the first does so.
  func tick(for user: ObjectIdentifier) {
    let watches = state.withLock { $0.watches }
    guard let watch = watches.first, watch.user == user else { return }
    let loop = watch.loop
    rotateKeys(at: loop.driver.now)
    warn(watches, at: loop.driver.unixTime)
    guard !paths.isEmpty else { return }
    let now = loop.driver.unixTime
    // If a file system hangs, this blocks one thread, not one more every 10 s.
    loop.offload { [self] in looking.withLockIfAvailable { _ in look(at: now) } }
  }

  private func rotateKeys(at now: LinkInstant) {
    guard case .rotating(let interval) = configuration.tickets else { return }
    let replaced = state.withLock { state in
      state.rotation.advance(to: now, every: interval.clampedNanoseconds)
        ? state.rotation.keys : nil
    }
    if let replaced { keys?.set(replaced) }
  }

  /// Warns a server that starts of certificates that are not valid or expire soon.
  func warnAtStart(_ watch: TLSWatch.Entry) {
    warn([watch], at: watch.loop.driver.unixTime, repeats: true)
  }

  /// Warns servers of certificates that are not valid or expire soon; once a day, unless `repeats`.
  private func warn(_ watches: [TLSWatch.Entry], at now: Int64, repeats: Bool = false) {
    let today = now / TLSServer.day
    let due = state.withLock { state -> [(PeerCertificate, Int64)] in
      let count = state.status.certificates.count
      if state.warnings.count != count { state.warnings = Array(repeating: -1, count: count) }
      return (0..<count).compactMap { index in
        let (certificate, expiry) = (state.status.certificates[index], state.status.expiries[index])
        let isFine = certificate.notBefore <= now && expiry - now > TLSServer.warningPeriod
        guard !isFine, repeats || state.warnings[index] != today else { return nil }
        state.warnings[index] = today
        return (certificate, expiry)
      }
    }
    for (certificate, expiry) in due {
      for watch in watches { TLSServer.warn(of: certificate, until: expiry, at: now, watch.log) }
    }
  }

  private static func warn(
    of certificate: PeerCertificate, until expiry: Int64, at now: Int64, _ log: SecurityLog
  ) {
    var details = [
      "subject": PeerText.shortened(certificate.subject), "expiry": PeerCertificate.date(expiry),
    ]
    if expiry <= now {
      log(.error, "A certificate has expired; clients refuse it. Replace its file.", details)
    } else if certificate.notBefore > now {
      details["validFrom"] = PeerCertificate.date(certificate.notBefore)
      log(
        .error,
        """
        A certificate is not valid yet; clients refuse it. Replace its file, or set the clock right.
        """, details)
    } else {
      log(.error, "A certificate expires soon. Replace its file.", details)
    }
  }

  /// Reads the files when no other thread does, and uses them if they have changed and fit. It
  /// blocks.
  func lookNow(at watch: TLSWatch.Entry?) {
    // Without a running server, there is only the clock of this machine.
    let now = watch?.loop.driver.unixTime ?? Int64(time(nil))
    looking.withLock { _ in read(TLSFileStates.now(paths), at: now, tellsAgain: true) }
  }

  /// Looks at the files, and reads them if they have changed, or could not be used the last time;
  /// one thread at a time.
  private func look(at now: Int64) {
    let states = TLSFileStates.now(paths)
    guard state.withLock({ $0.fileStates.isDue(states) }) else { return }
    read(states, at: now)
  }

  /// Reads the files, and uses them if they have changed and fit.
  private func read(_ states: TLSFileStates.States, at now: Int64, tellsAgain: Bool = false) {
    do throws(LongLinkError) {
      let files = try TLSFiles(sources)
      guard files.digests != state.withLock({ $0.digests }) else {
        // The files that failed before may have been changed back.
        return state.withLock { state in
          state.fileStates.use(states)
          state.status.failure = nil
        }
      }
      try use(files, states, at: now)
    } catch {
      noteFailure(error, states, at: now, tellsAgain: tellsAgain)
    }
  }

  private func use(
    _ files: TLSFiles, _ states: TLSFileStates.States, at now: Int64
  ) throws(LongLinkError) {
    var replacedKeys: [[UInt8]]?
    if case .keys(let source) = configuration.tickets {
      replacedKeys = try TLSServer.ticketKeys(files.bytes(of: source), source)
    }
    let context = try plan.context(files, keys: keys)
    var status = Status(context)
    try checkDates(status, files, at: now)
    if let replacedKeys { keys?.set(replacedKeys) }
    let watches = state.withLock { state in
      status.reloads = state.status.reloads + 1
      status.lastReload = now
      status.failures = state.status.failures
      status.lastFailure = state.status.lastFailure
      state.context = context
      state.digests = files.digests
      state.fileStates.use(states)
      state.status = status
      state.warnings = []
      return state.watches
    }
    let subjects = status.certificates.map { PeerText.shortened($0.subject) }.joined(
      separator: "; ")
    for watch in watches {
      watch.log(
        .info, "Files of certificates were replaced; new connections use them",
        ["subjects": subjects, "expiry": PeerCertificate.date(status.expiries.min() ?? 0)])
      if configuration.movesConnections { watch.replaced() }
    }
  }

  /// Throws if a new certificate is not valid now. A certificate that was in use before and has
  /// expired since does not keep other files from being used.
  private func checkDates(
    _ status: Status, _ files: TLSFiles, at now: Int64
  ) throws(LongLinkError) {
    let former = state.withLock { $0.digests }
    for (index, certificate) in status.certificates.enumerated() {
      let (field, identity) = plan.identities[index]
      let paths = [identity.chain.path, identity.key.path].compactMap(\.self)
      guard paths.contains(where: { files.digests[$0] != former[$0] }) else { continue }
      let source = identity.chain.text
      guard status.expiries[index] > now else {
        throw .configuration(
          "\(field).chain",
          "\(source): it expired at \(PeerCertificate.date(status.expiries[index]))")
      }
      guard certificate.notBefore <= now else {
        throw .configuration(
          "\(field).chain",
          "\(source): it is not valid before \(PeerCertificate.date(certificate.notBefore))")
      }
    }
  }

  /// Records why files cannot be used, and reports it, unless it was reported for the same files
  /// before.
  private func noteFailure(
    _ error: LongLinkError, _ states: TLSFileStates.States, at now: Int64, tellsAgain: Bool
  ) {
    let watches = state.withLock { state -> [TLSWatch.Entry] in
      guard state.fileStates.fail(states, error) || tellsAgain else { return [] }
      state.status.failures += 1
      state.status.lastFailure = now
      state.status.failure = error
      return state.watches
    }
    for watch in watches {
      watch.log(
        .error, "Changed files of certificates cannot be used; the old ones stay in use",
        ["error": "\(error)"])
    }
  }
}
