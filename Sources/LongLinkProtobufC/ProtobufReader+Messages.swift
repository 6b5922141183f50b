// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

extension ProtobufReader {
  /// Reads one message of a repeated field.
  ///
  /// Throws the errors of reading it, `.tooDeep` if messages are nested more than 100 levels below
  /// the outermost, and `.tooLarge` beyond the limit on memory.
  @inlinable
  public mutating func message<Message: ProtobufCBody>(
    _ type: Message.Type = Message.self
  ) throws(BodyError) -> Message {
    var isRead = false
    return try message(once: &isRead)
  }

  /// Reads a message field that is not repeated, and sets `isRead` to true. Let it begin as false.
  ///
  /// Throws like `message(_:)`, and `.notRepresentable` if `isRead` was already true.
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
