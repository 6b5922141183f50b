// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkPOSIX
internal import Synchronization

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// Looks names up with `getaddrinfo`, which blocks, on a few dedicated threads.
///
/// A thread ends when there are no more names to look up.
final class Resolver: Sendable {
  typealias Completion = @Sendable (Result<[SocketAddress], ResolveError>) -> Void

  /// The resolver of all loops, so that the thread limit holds for the process.
  static let shared = Resolver(mostThreads: 4)

  private struct Query {
    let host: String
    let port: UInt16
    let completion: Completion
  }

  private struct State {
    var queries: [Query] = []
    var threads = 0
  }

  private let mostThreads: Int
  private let lookUp: @Sendable (String, UInt16) -> Result<[SocketAddress], ResolveError>
  private let state = Mutex(State())

  init(
    mostThreads: Int,
    lookUp: @escaping @Sendable (String, UInt16) -> Result<[SocketAddress], ResolveError> =
      systemLookUp
  ) {
    self.mostThreads = mostThreads
    self.lookUp = lookUp
  }

  /// Looks a name up and calls `completion` on one of the resolver's threads.
  func resolve(host: String, port: UInt16, completion: @escaping Completion) {
    let needsThread = state.withLock(of: self) { state in
      state.queries.append(Query(host: host, port: port, completion: completion))
      guard state.threads < mostThreads else { return false }
      state.threads += 1
      return true
    }
    if needsThread { startThread() }
  }

  private func startThread() {
    let failure = unsafe cll_thread_start(
      nil,
      "longlink-names",
      1 << 20,
      { unsafe Unmanaged<Resolver>.fromOpaque($0).takeRetainedValue().run() },
      Unmanaged.passRetained(self).toOpaque()
    )
    guard failure != 0 else { return }
    unsafe Unmanaged.passUnretained(self).release()
    // Another thread, if there is one, takes the query. Otherwise the queries fail.
    let abandoned = state.withLock(of: self) { state -> [Query] in
      state.threads -= 1
      guard state.threads == 0 else { return [] }
      defer { state.queries.removeAll() }
      return state.queries
    }
    for query in abandoned {
      let text = SocketError(operation: "start a thread", errno: failure).description
      query.completion(.failure(ResolveError(host: query.host, reason: text, code: EAI_SYSTEM)))
    }
  }

  private func run() {
    while let query = nextQuery() {
      query.completion(lookUp(query.host, query.port))
    }
  }

  private func nextQuery() -> Query? {
    state.withLock(of: self) { state in
      guard !state.queries.isEmpty else {
        state.threads -= 1
        return nil
      }
      return state.queries.removeFirst()
    }
  }
}

/// Returns the system's addresses of a name, in its order, without duplicates.
private func systemLookUp(
  _ host: String,
  _ port: UInt16
) -> Result<[SocketAddress], ResolveError> {
  // The system would stop at a NUL and look up another name.
  guard !host.isEmpty, !host.utf8.contains(0) else {
    return .failure(ResolveError(host: host, reason: "not a name", code: EAI_NONAME))
  }
  var hints = unsafe addrinfo()
  unsafe hints.ai_family = AF_UNSPEC
  #if canImport(Darwin)
  unsafe hints.ai_socktype = SOCK_STREAM
  #else
  unsafe hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
  #endif
  var list: UnsafeMutablePointer<addrinfo>?
  let code = unsafe getaddrinfo(host, nil, &hints, &list)
  guard code == 0 else {
    let reason =
      code == EAI_SYSTEM
      ? SocketError(operation: "getaddrinfo", errno: errno).description
      : unsafe String(cString: gai_strerror(code))
    return .failure(ResolveError(host: host, reason: reason, code: code))
  }
  defer { unsafe freeaddrinfo(list) }
  var addresses: [SocketAddress] = []
  var next = unsafe list
  while let entry = unsafe next {
    let bytes = unsafe UnsafeRawBufferPointer(
      start: entry.pointee.ai_addr,
      count: Int(entry.pointee.ai_addrlen)
    )
    if let address = unsafe SocketAddress(native: bytes)?.with(port: port),
      !addresses.contains(address)
    {
      addresses.append(address)
    }
    unsafe next = entry.pointee.ai_next
  }
  return .success(addresses)
}

extension SocketAddress {
  /// Returns the same address with another port.
  package func with(port: UInt16) -> SocketAddress {
    switch storage {
    case .ipv4(let address, _):
      SocketAddress(.ipv4(address, port: port))
    case .ipv6(let upper, let lower, _, let scope):
      SocketAddress(.ipv6(upper: upper, lower: lower, port: port, scope: scope))
    case .unix:
      self
    }
  }
}
