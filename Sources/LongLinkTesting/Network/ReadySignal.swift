// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Whether a loop may have readiness to deliver, readable without the world's lock.
final class ReadySignal: Sendable {
  let mayBeReady = Atomic(false)
}
