// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkSystem
internal import LongLinkCLibrary
internal import LongLinkCore
internal import Synchronization

/// Looks names up with `getaddrinfo`, which blocks, on a few dedicated threads.
///
/// A look-up of a name whose servers do not answer holds its thread for 10 to 30 s, and nothing can
/// interrupt it. So that such names do not delay the look-ups of others:
/// - Owners take turns, as in `Turns`, and an owner has at most two look-ups that run; four while
/// fewer than half of the threads are busy, since those that it has withdrawn still run.
/// - One thread is kept for owners that have no running look-up.
/// - Equal names share a look-up, whatever their ports, until an owner withdraws from it: those
/// that come later may be on another network.
/// - What an owner withdraws never runs if it still waits.
///
/// A thread ends when there are no more names that it may look up.
final class Resolver: Sendable {
  typealias Completion = @Sendable (Result<[SocketAddress], ResolveError>) -> Void

  /// The resolver of all loops, so that its bounds hold for the process: 16 threads, and 1,024
  /// look-ups that wait, beyond which a further one fails at once.
  static let shared = Resolver(mostThreads: 16)

  private struct Query {
    let host: String
    let port: UInt16
    let owner: LookUpOwner
    let completion: Completion

    var ownerID: ObjectIdentifier { ObjectIdentifier(owner) }
  }

  /// A running look-up; it is a turn of the owner of its first query.
  private struct LookUp {
    let id: UInt64
    let first: Query
    /// The queries that still want the look-up's result.
    var queries: [Query]
    /// Whether further queries may share it.
    var isShared = true

    func hasName(of query: Query) -> Bool { first.host == query.host }
  }

  private struct State {
    var waiting = Turns<ObjectIdentifier, Query>()
    /// The running look-ups, one for each thread.
    var running: [LookUp] = []
    var lastID: UInt64 = 0
  }

  private let mostThreads: Int
  private let mostWaiting: Int
  private let startThread: @Sendable (@escaping @Sendable () -> Void) -> CInt
  private let lookUp: @Sendable (String) -> Result<[SocketAddress], ResolveError>
  private let state = Mutex(State())

  init(
    mostThreads: Int,
    mostWaiting: Int = 1_024,
    lookUp: @escaping @Sendable (String) -> Result<[SocketAddress], ResolveError> = systemLookUp,
    startThread: @escaping @Sendable (@escaping @Sendable () -> Void) -> CInt = {
      systemThread(named: "longlink-names", $0)
    }
  ) {
    self.mostThreads = mostThreads
    self.mostWaiting = mostWaiting
    self.startThread = startThread
    self.lookUp = lookUp
  }

  /// How many queries wait for a thread.
  var waiting: Int { state.withLock(of: self) { $0.waiting.count } }

  /// Looks a name up and calls `completion` on one of the resolver's threads, or at once if too
  /// many wait.
  func resolve(
    host: String, port: UInt16, for owner: LookUpOwner, completion: @escaping Completion
  ) {
    let query = Query(host: host, port: port, owner: owner, completion: completion)
    let (isTaken, next) = state.withLock(of: self) { state -> (Bool, LookUp?) in
      if let index = state.running.firstIndex(where: { $0.isShared && $0.hasName(of: query) }) {
        state.running[index].queries.append(query)
        return (true, nil)
      }
      guard state.waiting.count < mostWaiting else { return (false, nil) }
      state.waiting.append(query, of: query.ownerID)
      return (true, begin(&state))
    }
    if isTaken {
      start(next)
    } else {
      let text = "\(mostWaiting) look-ups wait already, because name servers do not answer"
      completion(.failure(ResolveError(host: host, reason: text, code: EAI_AGAIN)))
    }
  }

  /// Forgets the queries of an owner. Their completions are not called any more, except for those
  /// whose look-up ends right now.
  func withdraw(_ owner: LookUpOwner) {
    state.withLock(of: self) { state in
      state.waiting.removeAll { $0.owner === owner }
      for index in state.running.indices {
        let count = state.running[index].queries.count
        state.running[index].queries.removeAll { $0.owner === owner }
        if state.running[index].queries.count < count { state.running[index].isShared = false }
      }
    }
  }

  /// Begins the next look-up, which the caller has to run; nil if no query may begin now, or no
  /// thread is free.
  private func begin(_ state: inout State) -> LookUp? {
    guard state.running.count < mostThreads else { return nil }
    let busy = state.running.count
    let most = busy == mostThreads - 1 ? 1 : busy < mostThreads / 2 ? 4 : 2
    guard let first = state.waiting.popFirst(atMost: most)?.element else { return nil }
    state.lastID += 1
    var lookUp = LookUp(id: state.lastID, first: first, queries: [first])
    state.waiting.removeAll { query in
      guard lookUp.hasName(of: query) else { return false }
      lookUp.queries.append(query)
      return true
    }
    state.running.append(lookUp)
    return lookUp
  }

  /// Runs a look-up on a new thread. If the system has none, the queries wait for another look-up
  /// to end. If no other one runs, they fail, and the next look-up begins.
  private func start(_ lookUp: LookUp?) {
    var next = lookUp
    while let lookUp = next {
      let failure = startThread { [self] in run(lookUp) }
      guard failure != 0 else { return }
      if waits(lookUp) { return }
      let text = SocketError(operation: "start a thread", errno: failure).description
      next = end(
        lookUp, .failure(ResolveError(host: lookUp.first.host, reason: text, code: EAI_SYSTEM)))
    }
  }

  /// Puts the queries of a look-up back into the queue. Returns false, and does nothing, if no
  /// other look-up runs after which they could begin.
  private func waits(_ lookUp: LookUp) -> Bool {
    state.withLock(of: self) { state in
      guard state.running.count > 1,
        let index = state.running.firstIndex(where: { $0.id == lookUp.id })
      else { return false }
      state.waiting.ended(lookUp.first.ownerID)
      for query in state.running.remove(at: index).queries {
        state.waiting.append(query, of: query.ownerID)
      }
      return true
    }
  }

  private func run(_ first: LookUp) {
    var next: LookUp? = first
    while let current = next { next = end(current, lookUp(current.first.host)) }
  }

  /// Answers the queries of a look-up, and begins the next one.
  private func end(
    _ lookUp: LookUp, _ result: Result<[SocketAddress], ResolveError>
  ) -> LookUp? {
    let (queries, next) = state.withLock(of: self) { state -> ([Query], LookUp?) in
      state.waiting.ended(lookUp.first.ownerID)
      let index = state.running.firstIndex { $0.id == lookUp.id }
      let ended = index.map { state.running.remove(at: $0) }
      return (ended?.queries ?? [], begin(&state))
    }
    for query in queries {
      query.completion(result.map { $0.map { address in address.with(port: query.port) } })
    }
    return next
  }
}

/// Returns the system's addresses of a name, in its order, without duplicates.
private func systemLookUp(_ host: String) -> Result<[SocketAddress], ResolveError> {
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
    if let address = unsafe SocketAddress(native: bytes), !addresses.contains(address) {
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
