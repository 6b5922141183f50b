// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Tells a simulation, without the world's lock, that a loop may have readiness to deliver.
final class ReadySignal: Sendable {
  let mayBeReady = Atomic(false)
}
