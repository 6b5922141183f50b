// SPDX-License-Identifier: Apache-2.0

/// The result of processing the next frame.
enum FrameStep {
  /// There is no complete frame.
  case none
  /// The frame produced no message, but possibly effects.
  case taken
  case message(Arrival)

  init(_ message: Arrival?) {
    self = message.map(FrameStep.message) ?? .taken
  }
}
