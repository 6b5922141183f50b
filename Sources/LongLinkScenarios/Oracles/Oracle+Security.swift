// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTesting
package import LongLinkTransport
internal import Synchronization

extension Oracle {
  /// Wraps a client's security, so that the oracle sees the plain bytes: it cannot find frames in
  /// encrypted ones. Pass the result to the client's configuration.
  ///
  /// ```swift
  /// configuration.security = oracle.watching(try .tls(trusted))
  /// ```
  package func watching(_ security: ClientSecurity) -> ClientSecurity {
    ClientSecurity(WatchedClientSecurity(provider: security.provider, report: report))
  }

  /// Wraps a server's security, so that the oracle sees the plain bytes. Pass the result to the
  /// server's configuration.
  package func watching(_ security: ServerSecurity) -> ServerSecurity {
    ServerSecurity(WatchedServerSecurity(provider: security.provider, report: report))
  }

  private var report: WatchedTransport.Report {
    { [weak box] bytes in box?.value.withLock { $0.observed(bytes) } }
  }
}

extension Oracle.State {
  /// Takes an event of the network.
  mutating func observed(_ entry: Trace.Entry, _ bytes: [UInt8]) {
    if entry.kind == .corrupted { isDamaged = true }
    // The oracle gets the plain bytes of these encrypted ones separately.
    let isCiphered =
      (entry.kind == .written || entry.kind == .bytesArrived) && securedLinks.contains(entry.link)
    if !isShort(entry) {
      links.observed(entry, bytes)
      if !isCiphered { credit.observed(entry, bytes) }
    }
    if !isCiphered { recorder?.observed(entry, bytes) }
  }

  /// Takes the plain bytes of a secured stream. Bytes that one side reads have arrived there.
  fileprivate mutating func observed(_ plain: PlainBytes) {
    var entry = Trace.Entry(.written, at: plain.name, of: plain.machine, plain.time)
    var bytes: [UInt8] = []
    switch plain.event {
    case .secured:
      securedLinks.insert(plain.name.link)
      return links.secured(plain.name)
    case .writing:
      return links.writesPlain(plain.name)
    case .written(let written):
      bytes = written
      entry.value = UInt64(written.count)
    case .read(let count):
      entry.kind = .bytesArrived
      entry.value = UInt64(count)
    }
    if !isShort(entry) {
      if entry.kind == .written { links.wrotePlain(bytes, plain.name, at: plain.time) }
      if entry.value > 0 { credit.observed(entry, bytes) }
    }
    if entry.value > 0 { recorder?.observed(entry, bytes) }
  }
}
