// SPDX-License-Identifier: Apache-2.0

/// An action that a connection asks its link to perform. Effects are in order.
package enum Effect: Equatable, Sendable {
  /// Pass a message that follows other effects to the owner.
  case message(Arrival)
  /// Notify the owner.
  case report(LinkNews)
  /// End the stream in this direction, now that everything is written.
  case shutDownWriting
  /// Close the stream. No effects follow.
  indirect case close(CloseReason)

  /// Whether the effect passes on a request of the peer.
  var isRequest: Bool {
    if case .message(let message) = self { message.kind == .request } else { false }
  }

  /// Whether the effect passes on something that the peer sent.
  var isDelivery: Bool {
    switch self {
    case .message, .report(.cancel), .report(.request(.collect)), .report(.stream(.stuck, _)),
      .report(.stream(.overLimit, _)):
      true
    case .report, .shutDownWriting, .close: false
    }
  }
}
