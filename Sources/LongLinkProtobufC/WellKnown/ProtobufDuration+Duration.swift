// SPDX-License-Identifier: Apache-2.0

extension ProtobufDuration {
  /// Makes a message from a duration, which is truncated toward zero to whole nanoseconds.
  public init(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    self.init(seconds: seconds, nanos: Int32(attoseconds / 1_000_000_000))
  }

  /// The duration as Swift's type.
  public var duration: Duration {
    .seconds(seconds) + .nanoseconds(Int64(nanos))
  }
}
