// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
@_spi(Loop) import LongLinkTransport

/// The calls of a server's `authenticate` function for the connections of one loop, when they open
/// and when their clients renew their credentials.
///
/// The number of calls that have not returned is bounded, including calls that were given up.
/// Further connections wait, and addresses take turns. Each connection gets its answer within the
/// timeout.
final class AuthenticationQueue: TimerHandler {
  typealias Function = @Sendable (AuthenticationRequest) async throws -> Authentication

  private struct Entry {
    let connection: ServerConnection
    /// Whether the entry is for the renewal of an open connection's credential.
    let renews: Bool
    let timer: LoopTimer
    var task: Task<Void, Never>?
    /// The number of the call for this entry; nil until the call begins.
    var call: UInt64?
  }

  private let function: Function
  private let loop: EventLoop
  private let shared: ServerShared
  private let limit: Int
  /// The most time until a connection gets its answer, in nanoseconds.
  private let timeout: Int64
  /// The entries of connections that have no answer yet, by the connection's number.
  private var entries: [UInt64: Entry] = [:]
  /// The connections that wait for their call, by number, some of which may have ended; and the
  /// count of calls that have not returned. Both by the group of the client's address.
  private var turns = Turns<SocketAddress.Group?, UInt64>()
  /// The number of calls that have begun.
  private var calls: UInt64 = 0
  /// Principals whose connections were ended while calls ran, and so may have been accepted by
  /// these calls: the name's bytes, with the last call that had begun. Emptied as the calls return.
  private var dismissed: [[UInt8]: (call: UInt64, reason: String)] = [:]
  private(set) var counters = AuthenticationCounters()

  init(
    _ function: @escaping Function, limit: Int, timeout: Int64, shared: ServerShared,
    on loop: EventLoop
  ) {
    self.shared = shared
    self.function = function
    self.limit = limit
    self.timeout = timeout
    self.loop = loop
  }

  /// Lets the function decide about a connection, at once or when a call may begin.
  func identify(_ connection: ServerConnection) {
    let renews = connection.link.connection.isRenewing
    if renews, !shared.beginRenewal(of: connection.admission, at: loop.now) {
      return connection.turnAway(.overloaded, "too many clients renew their credentials")
    }
    let timer = loop.schedule(at: loop.now + timeout, self, token: connection.id)
    entries[connection.id] = Entry(connection: connection, renews: renews, timer: timer)
    turns.append(connection.id, of: connection.peer.address?.group)
    startNext()
  }

  /// Gives up the entry of a connection that has ended.
  func ended(_ id: UInt64) {
    take(id)?.task?.cancel()
    forgetEnded()
  }

  private func forgetEnded() {
    if turns.count > 2 * entries.count + 64 { turns.removeAll { entries[$0] == nil } }
  }

  private func take(_ id: UInt64) -> Entry? {
    guard let entry = entries.removeValue(forKey: id) else { return nil }
    loop.cancel(entry.timer)
    if entry.renews { shared.endRenewal() }
    return entry
  }

  private func startNext() {
    while turns.running < limit, let (group, id) = turns.popFirst() {
      // The entry may be gone, or a second turn of the same connection may come while its call
      // runs.
      guard let entry = entries[id], entry.call == nil else {
        turns.ended(group)
        continue
      }
      calls += 1
      let call = calls
      entries[id]?.call = call
      let request = entry.connection.authenticationRequest
      let reference = LoopBound(self, on: loop)
      entries[id]?.task = Task(executorPreference: loop) { [function] in
        let result: Result<Authentication, any Error>
        do {
          result = .success(try await function(request))
        } catch {
          result = .failure(error)
        }
        reference.loop.execute { reference.value.returned(id, call, of: group, result) }
      }
    }
  }

  /// Refuses a principal in all calls that have begun and not returned.
  func end(principal name: String, _ reason: String) {
    guard entries.values.contains(where: { $0.call != nil }) else { return }
    dismissed[Array(name.utf8)] = (calls, reason)
  }

  /// Why an answer of the function does not hold; nil if it holds.
  private func objection(
    to authentication: Authentication, of call: UInt64, about entry: Entry
  ) -> Rejection? {
    if let validity = authentication.validity, validity <= .zero {
      return Rejection(.unauthenticated, "the credential has expired")
    }
    let name = authentication.principal?.name
    if entry.renews, !entry.connection.isOf(principal: name) {
      return Rejection(.forbidden, "the connection is that of another client")
    }
    guard !dismissed.isEmpty, let name, let dismissal = dismissed[Array(name.utf8)],
      call <= dismissal.call
    else { return nil }
    return Rejection(.unauthenticated, dismissal.reason)
  }

  private func returned(
    _ id: UInt64, _ call: UInt64, of group: SocketAddress.Group?,
    _ result: Result<Authentication, any Error>
  ) {
    turns.ended(group)
    // False if the call was given up, even if the connection has asked again since.
    if entries[id]?.call == call, let entry = take(id) {
      switch result {
      case .success(let authentication):
        if let objection = objection(to: authentication, of: call, about: entry) {
          refuse(entry, objection)
        } else {
          if entry.renews { counters.renewed += 1 } else { counters.accepted += 1 }
          entry.connection.accepted(authentication)
        }
      case .failure(let rejection as Rejection)
      where rejection.code == .unauthenticated || rejection.code == .forbidden:
        refuse(entry, rejection)
      case .failure(let error):
        counters.failed += 1
        entry.connection.authenticationFailed(error)
      }
    }
    if !dismissed.isEmpty {
      let oldest = entries.values.compactMap(\.call).min() ?? .max
      dismissed = dismissed.filter { $0.value.call >= oldest }
    }
    startNext()
  }

  private func refuse(_ entry: Entry, _ rejection: Rejection) {
    counters.refused += 1
    entry.connection.turnAway(rejection.code, String(decoding: rejection.body, as: UTF8.self))
  }

  func timerFired(token: UInt64) {
    guard let entry = take(token) else { return }
    entry.task?.cancel()
    forgetEnded()
    counters.timedOut += 1
    entry.connection.turnAway(.draining, "the server could not check in time who the client is")
  }
}
