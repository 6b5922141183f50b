// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport
internal import LongLinkUploadMessages

/// The file with an upload's state. Each change is atomic: after a crash the file has the old state
/// or the new one.
///
/// The file has its full size from the beginning, so that a full disk does not prevent a change,
/// and a flush writes only the file's bytes.
enum StateFile {
  static let name = "state"
  private static let slotSize = 512

  /// Creates the file; its bytes are durable when this returns.
  static func make(_ state: StoredState, in folder: Folder) throws(FileError) {
    var bytes = encoded(state)
    bytes += [UInt8](repeating: 0, count: slotSize)
    if state.number % 2 == 1 { bytes = Array(bytes[slotSize...] + bytes[..<slotSize]) }
    try folder.write(bytes, to: name)
  }

  /// Reads the newest valid state; nil if there is none.
  static func read(in folder: Folder) throws(FileError) -> StoredState? {
    let bytes = try folder.contents(of: name, limit: 2 * slotSize)
    guard bytes.count == 2 * slotSize else { return nil }
    return [bytes[..<slotSize], bytes[slotSize...]].compactMap(decoded)
      .max { $0.number < $1.number }
  }

  /// Replaces the state. The new one must have the next number, and is durable when this returns.
  static func replace(with state: StoredState, in folder: Folder) throws(FileError) {
    let file = try folder.file(name)
    let offset = UInt64(state.number % 2) * UInt64(slotSize)
    if let error = file.write(encoded(state)[...], at: offset).error { throw error }
    try file.sync()
  }

  private static func encoded(_ state: StoredState) -> [UInt8] {
    guard let message = try? state.encodedBytes(), message.count <= slotSize - 8 else {
      preconditionFailure("the state of an upload fits into its slot")
    }
    var slot = number(checksum(of: message)) + number(UInt32(message.count)) + message
    slot += [UInt8](repeating: 0, count: slotSize - slot.count)
    return slot
  }

  private static func decoded(_ slot: ArraySlice<UInt8>) -> StoredState? {
    let bytes = Array(slot)
    let count = Int(value(bytes[4..<8]))
    guard count > 0, count <= slotSize - 8 else { return nil }
    let message = Array(bytes[8..<(8 + count)])
    guard checksum(of: message) == value(bytes[0..<4]) else { return nil }
    return try? StoredState(decodingBytes: message)
  }

  private static func checksum(of bytes: [UInt8]) -> UInt32 {
    // The span is used only within the call.
    unsafe Adler32.checksum(of: bytes.span.bytes, continuing: 1)
  }

  private static func number(_ value: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  private static func value(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
  }
}

extension BodyDecodable {
  /// Decodes a message from a file.
  init(decodingBytes bytes: [UInt8]) throws(BodyError) {
    // The span is used only within the call.
    try unsafe self.init(decoding: bytes.span.bytes)
  }
}
