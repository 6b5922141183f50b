// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCertificates
import LongLinkTLS

/// What a stranger makes a side of TLS read: records, certificates, and extensions of hellos.
enum HandshakeFuzz {
  /// The first byte says what the others are.
  static func run(_ bytes: [UInt8]) throws {
    guard let choice = bytes.first else { return }
    let rest = Array(bytes.dropFirst())
    if choice & 4 != 0 {
      try runExtension(extensions[Int(choice >> 3) % extensions.count], rest)
    } else if choice & 8 != 0 {
      try runRecords(rest, fromClient: choice & 1 != 0, isOld: choice & 2 != 0)
    } else {
      try runMessage(rest, fromClient: choice & 1 != 0, isNew: choice & 2 != 0)
    }
  }

  private static let extensions: [CInt] = [5, 10, 47, 51]

  private static func runRecords(_ bytes: [UInt8], fromClient: Bool, isOld: Bool) throws {
    let isPlain = RecordBounds.isPlain(bytes.span, fromClient: fromClient)
    var (bounds, messages, isEncrypted) = (RecordBounds(), [UInt8](), false)
    var rest = bytes[...]
    while true {
      let length = RecordBounds.length(of: Array(rest).span)
      try expect((0...rest.count).contains(length), "a record is longer than what came")
      guard length > 0 else { break }
      let record = Array(rest.prefix(length))
      try expect(RecordBounds.length(of: record.span) == length, "bytes behind a record matter")
      try expect(
        isPlain || rest.startIndex > 0 || [21, 22].contains(record[0]), "plain bytes were taken")
      let isRefused = bounds.announcesLargeHello(record.span, isOld: isOld)
      isEncrypted = isEncrypted || isOld && record[0] == 20
      if record[0] == 22, !isEncrypted { messages += record.dropFirst(5) }
      try expect(isRefused == hasLargeHello(messages), "a hello is not as large as it says")
      if isRefused { return }
      rest = rest.dropFirst(length)
    }
  }

  /// The same as the records' bounds find, of all messages together.
  private static func hasLargeHello(_ messages: [UInt8]) -> Bool {
    var rest = messages[...]
    while rest.count >= 4 {
      let header = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
      if header >> 24 == 1, header & 0xFF_FFFF > 24_576 { return true }
      rest = rest.dropFirst(4 + header & 0xFF_FFFF)
    }
    return false
  }

  private static func runMessage(_ bytes: [UInt8], fromClient: Bool, isNew: Bool) throws {
    func judge(_ bytes: inout [UInt8]) -> ChainProblem? {
      var span = bytes.mutableSpan
      return HandshakeBounds.judge(&span, fromClient: fromClient, isNew: isNew)
    }
    var judged = bytes
    guard let problem = judge(&judged) else {
      return try expect(judged == bytes, "a message without a problem was changed")
    }
    try expect(
      judged.count == bytes.count && judged.prefix(4) == bytes.prefix(4)
        && judged.dropFirst(8) == bytes.dropFirst(8), "more than the length of the list was changed"
    )
    // Now the list claims to be longer than it is, which is left to OpenSSL.
    try expect(
      problem == .compressed || judge(&judged) == nil, "a refused message can still be read")
  }

  private static func runExtension(_ type: CInt, _ bytes: [UInt8]) throws {
    guard HandshakeBounds.isCrowded(type, bytes.span) else { return }
    // Nine shares have four bytes each, at least; a name may be damaged.
    try expect(type == 47 || bytes.count >= 2 + 9 * 4, "a short extension is crowded")
  }

  static var seeds: [[UInt8]] {
    let keys: [CertificateRequest.KeyKind] = [.ed25519, .p256]
    let certificates = keys.map { kind in
      let pair = CertificateKit.make(
        CertificateRequest(
          name: "seed", names: ["DNS:seed.test"], validity: 0..<4_000_000_000, keyKind: kind))
      let text = String(decoding: pair.certificate, as: UTF8.self)
      let lines = text.split(separator: "\n").filter { !$0.hasPrefix("-") }
      return Array(Data(base64Encoded: lines.joined()) ?? Data())
    }
    func vector(_ size: Int, _ bytes: [UInt8]) -> [UInt8] {
      (0..<size).reversed().map { UInt8(truncatingIfNeeded: bytes.count >> (8 * $0)) } + bytes
    }
    let chains = [certificates, [certificates[1]], Array(repeating: certificates[0], count: 11)]
    let messages = chains.flatMap { chain in
      (0..<4).map { (choice: UInt8) -> [UInt8] in
        let isNew = choice & 2 != 0
        let list = chain.flatMap { vector(3, $0) + [UInt8](repeating: 0, count: isNew ? 2 : 0) }
        let start = [UInt8](repeating: 0, count: isNew ? 1 : 0)
        return [choice, 11] + vector(3, start + vector(3, list))
      }
    }
    let name = vector(2, [0x30, 0])
    func record(_ kind: UInt8, _ content: [UInt8]) -> [UInt8] { [kind, 3, 3] + vector(2, content) }
    let hellos = record(22, [1, 0, 0, 2, 7]) + record(20, [1]) + record(22, [7, 1, 1, 0, 0])
    return messages + [8, 9, 10, 11].map { [$0] + hellos } + [
      [8] + record(21, [2, 40]), [9, 22, 2],
      [2, 25, 0, 0, 8, 0, 1, 0, 0, 9, 0, 0, 1], [4] + [UInt8](repeating: 0, count: 1_025),
      [12] + [UInt8](repeating: 0, count: 131),
      [20] + vector(2, (0..<513).flatMap { _ in name }),
      [28] + vector(2, (0..<9).flatMap { [0x7F, $0, 0, 2, 1, 1] }),
    ]
  }
}
