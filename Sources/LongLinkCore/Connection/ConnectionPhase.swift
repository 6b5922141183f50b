// SPDX-License-Identifier: Apache-2.0

/// The phase of a connection's life.
package enum ConnectionPhase: Equatable, Sendable {
  /// No frame has arrived yet.
  case fresh
  /// A server decides whether it accepts the client: nothing that the client sends is acted on.
  case identifying
  /// Frames are exchanged.
  case open
  /// A goaway may have stated the reason; this side waits for the peer's end of stream.
  case closing(CloseReason)
  /// The connection has ended.
  case closed(CloseReason)

  /// What is possible in a phase.
  struct Standing: OptionSet {
    let rawValue: UInt8

    /// Frames can be sent that are not part of closing.
    static let open = Standing(rawValue: 1)
    /// Exchanges can still complete.
    static let live = Standing(rawValue: 2)
    /// Frames of the peer are processed.
    static let receiving = Standing(rawValue: 4)
  }

  /// Whether this phase can be followed by `next`.
  func canBecome(_ next: ConnectionPhase) -> Bool {
    switch (self, next) {
    case (.fresh, .identifying), (.fresh, .open), (.fresh, .closing), (.fresh, .closed): true
    case (.identifying, .open), (.identifying, .closing), (.identifying, .closed): true
    case (.open, .closing), (.open, .closed): true
    case (.closing, .closed): true
    case (_, .fresh), (_, .identifying), (.open, .open), (.closing, _), (.closed, _): false
    }
  }

  var standing: Standing {
    switch self {
    case .fresh: [.live, .receiving]
    case .identifying: .live
    case .open: [.open, .live, .receiving]
    case .closing, .closed: []
    }
  }

  /// Why the connection has ended, or is ending; nil while it is not.
  package var endReason: CloseReason? {
    switch self {
    case .closing(let reason), .closed(let reason): reason
    case .fresh, .identifying, .open: nil
    }
  }

  /// Why the connection is ending; nil while it is not, and once it has ended.
  var closingReason: CloseReason? {
    if case .closing(let reason) = self { reason } else { nil }
  }

  /// Whether the connection has ended.
  var isClosed: Bool {
    if case .closed = self { true } else { false }
  }
}
