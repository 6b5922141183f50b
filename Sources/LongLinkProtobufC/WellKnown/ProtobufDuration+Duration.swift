// SPDX-License-Identifier: Apache-2.0

extension ProtobufDuration {
  /// The same time; what is finer than a nanosecond is cut off.
  public init(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    self.init(seconds: seconds, nanos: Int32(attoseconds / 1_000_000_000))
  }

  /// The same time.
  public var duration: Duration {
    .seconds(seconds) + .nanoseconds(Int64(nanos))
  }
}
