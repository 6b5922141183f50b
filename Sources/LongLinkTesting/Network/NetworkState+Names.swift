// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

extension NetworkState {
  /// The result of looking a name up, and the time that it takes.
  struct HostRecord {
    var result: Result<[SocketAddress], ResolveError>
    var delay: Int64
  }

  /// Looks a name up, and later calls `deliver` with the result, outside of the lock.
  mutating func lookUp(
    _ host: String,
    port: UInt16,
    _ deliver: @escaping @Sendable (Result<[SocketAddress], ResolveError>) -> Void
  ) {
    let record = hosts[host] ?? Self.unknown(host)
    let result = record.result.map { $0.map { $0.withPort(port) } }
    schedule.add(.call { deliver(result) }, at: now + record.delay)
    self.record(.lookedUp, value: (try? result.get().count) ?? 0)
  }

  /// The record of a name that the test has not set: `localhost`, or an unknown name.
  private static func unknown(_ host: String) -> HostRecord {
    guard host == "localhost" else {
      let error = ResolveError(
        host: host,
        reason: "the name is not known in the simulation",
        code: EAI_NONAME
      )
      return HostRecord(result: .failure(error), delay: 1_000_000)
    }
    return HostRecord(result: .success([.ipv4(127, 0, 0, 1, port: 0)]), delay: 0)
  }
}
