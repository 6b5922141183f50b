// SPDX-License-Identifier: Apache-2.0

import Dispatch

/// Runs a function on a thread that no executor owns.
enum PlainThread {
  static func run(_ body: @escaping @Sendable () -> Void) {
    DispatchQueue(label: "plain thread").async { body() }
  }
}

/// A queue that can tell whether the caller runs on it.
final class QueueProbe: Sendable {
  private static let key = DispatchSpecificKey<Bool>()
  let queue = DispatchQueue(label: "probe")

  init() {
    queue.setSpecific(key: Self.key, value: true)
  }

  var isCurrent: Bool { DispatchQueue.getSpecific(key: Self.key) == true }
}
