// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport
internal import Synchronization

/// Limits what unfinished uploads take, for each client and for all together. It may be used from
/// any thread.
final class Quotas: Sendable {
  private struct Usage: Equatable {
    var uploads = 0
    var appends = 0
    var requests = 0
    var bytes: UInt64 = 0
    var files = 0

    /// The bytes with the room that the files take besides on the disk.
    var cost: UInt64 { bytes + UInt64(files) * UploadLimits.blockBytes }
  }

  private struct State {
    var total = Usage()
    /// The bytes of the create requests of all unfinished uploads.
    var requestBytes = 0
    /// The usage of each client that uses anything.
    var clients: [String: Usage] = [:]

    mutating func change(_ client: String, _ change: (inout Usage) -> Void) {
      change(&total)
      change(&clients[client, default: Usage()])
      if clients[client] == Usage() { clients[client] = nil }
    }
  }

  private let limits: UploadLimits
  private let state = Mutex(State())

  init(_ limits: UploadLimits) {
    self.limits = limits
  }

  /// Counts an upload of a client, with its files; throws if that exceeds a limit.
  func addUpload(of client: String, requestSize: Int, files: Int) throws(UploadFailure) {
    let failure: UploadFailure? = state.withLock(of: self) { state in
      let own = state.clients[client, default: Usage()]
      if own.uploads >= limits.maxClientUploads {
        return .tooMany("the client has \(own.uploads) unfinished uploads")
      }
      guard state.total.uploads < limits.maxUploads,
        requestSize <= UploadLimits.mostRequestsBytes - state.requestBytes
      else { return .tooMany("the server has too many unfinished uploads") }
      guard room(of: own, state) >= UInt64(files) * UploadLimits.blockBytes else {
        return .noSpace("the unfinished uploads take all space that they may")
      }
      state.requestBytes += requestSize
      state.change(client) { usage in
        usage.uploads += 1
        usage.files += files
      }
      return nil
    }
    if let failure { throw failure }
  }

  /// Counts an upload that was found at the start, even beyond the limits.
  func restoreUpload(of client: String, requestSize: Int, files: Int, bytes: UInt64) {
    state.withLock(of: self) { state in
      state.requestBytes += requestSize
      state.change(client) { usage in
        usage.uploads += 1
        usage.files += files
        usage.bytes += bytes
      }
    }
  }

  /// Takes an upload and its bytes out of the count.
  func removeUpload(of client: String, requestSize: Int, files: Int, bytes: UInt64) {
    state.withLock(of: self) { state in
      state.requestBytes -= requestSize
      state.change(client) { usage in
        usage.uploads -= 1
        usage.files -= files
        usage.bytes -= bytes
      }
    }
  }

  /// Counts an append of a client; throws if that exceeds a limit.
  func addAppend(of client: String) throws(UploadFailure) {
    let objection: String? = state.withLock(of: self) { state in
      let own = state.clients[client, default: Usage()]
      if own.appends >= limits.maxClientAppends { return "the client has \(own.appends) appends" }
      if state.total.appends >= limits.maxAppends { return "the server has too many appends" }
      state.change(client) { $0.appends += 1 }
      return nil
    }
    if let objection { throw .tooMany(objection) }
  }

  /// Takes an append out of the count.
  func removeAppend(of client: String) {
    state.withLock(of: self) { state in state.change(client) { $0.appends -= 1 } }
  }

  /// Counts a request of a client that waits for files; throws if that exceeds a limit.
  func addRequest(of client: String) throws(UploadFailure) {
    let isAdmitted = state.withLock(of: self) { state in
      guard state.clients[client, default: Usage()].requests < UploadLimits.mostRequestsOfClient
      else { return false }
      state.change(client) { $0.requests += 1 }
      return true
    }
    if !isAdmitted { throw .tooMany("the client has too many requests for uploads") }
  }

  /// Takes a request out of the count.
  func removeRequest(of client: String) {
    state.withLock(of: self) { state in state.change(client) { $0.requests -= 1 } }
  }

  /// The number of bytes that a client may still write.
  func room(of client: String) -> UInt64 {
    state.withLock(of: self) { room(of: $0.clients[client, default: Usage()], $0) }
  }

  private func room(of own: Usage, _ state: State) -> UInt64 {
    min(
      limits.maxClientBytes - min(own.cost, limits.maxClientBytes),
      limits.maxBytes - min(state.total.cost, limits.maxBytes))
  }

  /// Counts bytes of a client; returns false, and counts none, if there is no room.
  func take(_ count: UInt64, of client: String) -> Bool {
    state.withLock(of: self) { state in
      guard count <= room(of: state.clients[client, default: Usage()], state) else { return false }
      state.change(client) { $0.bytes += count }
      return true
    }
  }

  /// Takes bytes out of the count.
  func giveBack(_ count: UInt64, of client: String) {
    guard count > 0 else { return }
    state.withLock(of: self) { state in state.change(client) { $0.bytes -= count } }
  }

  func fill(_ counters: inout UploadCounters) {
    let total = state.withLock(of: self) { $0.total }
    counters.unfinished = total.uploads
    counters.unfinishedBytes = total.bytes
    counters.appendsRunning = total.appends
  }
}
