// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

extension ProtobufReader {
  /// One message of a repeated field.
  ///
  /// Throws what reading it throws, `.tooDeep` where more than 100 stand inside each other, and
  /// `.tooLarge` past the memory that decoding may take.
  @inlinable
  public mutating func message<Message: ProtobufCBody>(
    _ type: Message.Type = Message.self
  ) throws(BodyError) -> Message {
    var isRead = false
    return try message(once: &isRead)
  }

  /// A message field that is not repeated; `isRead`, false before, tells whether it was read.
  ///
  /// Throws as for a repeated field, and `.notRepresentable` where it was read before.
  @inlinable
  public mutating func message<Message: ProtobufCBody>(
    once isRead: inout Bool
  ) throws(BodyError) -> Message {
    let outerEnd = try enterMessage(isFirst: !isRead)
    isRead = true
    let message = try Message.layout.read(from: &self)
    leaveMessage(outerEnd)
    return message
  }
}
