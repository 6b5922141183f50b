// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport
internal import Synchronization

/// Limits the files and bytes that clients finish, for each client and for all together. What was
/// used becomes free again evenly, a whole limit in a lifetime. It may be used from any thread, and
/// is empty at each start.
final class FinishedQuota: Sendable {
  /// The most clients that are counted separately. Beyond it, the client that has used least is
  /// forgotten; the limit of all clients still holds.
  static let mostClients = 10_000

  /// The used shares of the limits on files and on bytes at an instant, from 0 to 1.
  private struct Level {
    var files = 0.0
    var bytes = 0.0
    var at: UInt64

    var isEmpty: Bool { files == 0 && bytes == 0 }

    func drained(at now: UInt64, _ lifetime: UInt64) -> Level {
      let share = Double(now - min(at, now)) / Double(lifetime)
      return Level(files: max(0, files - share), bytes: max(0, bytes - share), at: max(at, now))
    }

    /// Returns the level with the cost of an upload added, or subtracted if `sign` is -1.
    func adding(_ cost: (files: Double, bytes: Double), _ sign: Double = 1) -> Level {
      Level(
        files: max(0, files + sign * cost.files), bytes: max(0, bytes + sign * cost.bytes), at: at)
    }
  }

  private struct State {
    var total = Level(at: 0)
    var clients: [String: Level] = [:]
  }

  private let limits: UploadLimits
  private let lifetime: UInt64
  private let state = Mutex(State())

  init(_ limits: UploadLimits) {
    self.limits = limits
    lifetime = UInt64(limits.lifetime / .milliseconds(1))
  }

  /// Throws if an upload would exceed a limit. Otherwise counts it, unless `counts` is false.
  func take(
    files: Int, bytes: UInt64, of client: String, now: UInt64, counts: Bool = true
  ) throws(UploadFailure) {
    let (ownCost, totalCost) = costs(files: files, bytes: bytes)
    let objection: String? = state.withLock(of: self) { state in
      let own = state.clients[client, default: Level(at: now)].drained(at: now, lifetime)
        .adding(ownCost)
      let total = state.total.drained(at: now, lifetime).adding(totalCost)
      for (level, name) in [(own, "the client has"), (total, "all clients have")] {
        if level.files > 1 { return "\(name) finished all files that they may for now" }
        if level.bytes > 1 { return "\(name) finished all bytes that they may for now" }
      }
      guard counts else { return nil }
      makeRoom(in: &state, for: client, now)
      state.clients[client] = own
      state.total = total
      return nil
    }
    if let objection { throw .noSpace(objection) }
  }

  /// Takes an upload out of the count, because it was not finished after all.
  func giveBack(files: Int, bytes: UInt64, of client: String) {
    let (ownCost, totalCost) = costs(files: files, bytes: bytes)
    state.withLock(of: self) { state in
      state.clients[client] = state.clients[client]?.adding(ownCost, -1)
      state.total = state.total.adding(totalCost, -1)
    }
  }

  /// The shares of a client's limits, and of the limits for all, that an upload uses, from 0 to 1.
  private func costs(
    files: Int, bytes: UInt64
  ) -> (own: (files: Double, bytes: Double), total: (files: Double, bytes: Double)) {
    let files = Double(files)
    let cost = Double(bytes) + files * Double(UploadLimits.blockBytes)
    return (
      (files / Double(limits.maxClientFinishedFiles), cost / Double(limits.maxClientFinishedBytes)),
      (files / Double(limits.maxFinishedFiles), cost / Double(limits.maxFinishedBytes))
    )
  }

  private func makeRoom(in state: inout State, for client: String, _ now: UInt64) {
    guard state.clients[client] == nil, state.clients.count >= Self.mostClients else { return }
    state.clients = state.clients.mapValues { $0.drained(at: now, lifetime) }
      .filter { !$0.value.isEmpty }
    guard state.clients.count >= Self.mostClients else { return }
    let least = state.clients.min {
      max($0.value.files, $0.value.bytes) < max($1.value.files, $1.value.bytes)
    }
    if let least { state.clients[least.key] = nil }
  }

  /// The number of clients that are counted separately.
  var clientCount: Int { state.withLock(of: self) { $0.clients.count } }
}
