// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
internal import Synchronization

/// Limits how many uploads run at once. Waiting uploads get a place in the order in which they
/// asked.
final class UploadPlaces: Sendable {
  private struct State {
    var free: Int
    var waiting: [Gate<Bool>] = []
  }

  private let state: Mutex<State>

  private struct Weak: Sendable {
    weak let places: UploadPlaces?
  }

  /// The places of each client that has an uploader, which keeps the client and its places alive.
  private static let all = Mutex<[ObjectIdentifier: Weak]>([:])

  /// The places that all uploaders of a client share.
  static func of(_ client: LongLinkClient) -> UploadPlaces {
    all.withLock { all in
      let id = ObjectIdentifier(client)
      if let places = all[id]?.places { return places }
      all = all.filter { $0.value.places != nil }
      let places = UploadPlaces(count: Uploader.mostAtOnce)
      all[id] = Weak(places: places)
      return places
    }
  }

  init(count: Int) {
    state = Mutex(State(free: count))
  }

  /// Waits for a place; returns false if the task is cancelled before it has one.
  func take() async -> Bool {
    let gate = Gate<Bool>()
    state.withLock(of: self) { state in
      if state.free > 0 {
        state.free -= 1
        gate.open(true)
      } else {
        state.waiting.append(gate)
      }
    }
    return await withTaskCancellationHandler {
      await gate.value
    } onCancel: {
      let isOut = state.withLock(of: self) { state -> Bool in
        guard let index = state.waiting.firstIndex(where: { $0 === gate }) else { return false }
        state.waiting.remove(at: index)
        return true
      }
      if isOut { gate.open(false) }
    }
  }

  /// Returns a place, which the upload that has waited longest gets.
  func giveBack() {
    let next = state.withLock(of: self) { state -> Gate<Bool>? in
      if !state.waiting.isEmpty { return state.waiting.removeFirst() }
      state.free += 1
      return nil
    }
    next?.open(true)
  }
}
