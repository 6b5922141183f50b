// SPDX-License-Identifier: Apache-2.0

/// The formats of packet capture files. They hold whole packets, not streams.
enum CaptureFormat: String {
  case pcap
  case pcapng

  /// Recognizes the format by a file's first bytes; nil for anything else.
  ///
  /// The magic numbers are those of pcap in either byte order, with times in micro- or nanoseconds
  /// (pcap-savefile(5)), and of pcapng (draft-ietf-opsawg-pcapng, section 4.1).
  init?(_ bytes: [UInt8]) {
    switch bytes.prefix(4) {
    case [0xA1, 0xB2, 0xC3, 0xD4], [0xD4, 0xC3, 0xB2, 0xA1], [0xA1, 0xB2, 0x3C, 0x4D],
      [0x4D, 0x3C, 0xB2, 0xA1]:
      self = .pcap
    case [0x0A, 0x0D, 0x0D, 0x0A]: self = .pcapng
    default: return nil
    }
  }

  /// Advice on decoding such a file, with a command to copy.
  func advice(file: String, layout: String?) -> String {
    let columns = PacketDump.columns.map { "-e \($0)" }.joined(separator: " ")
    let options = layout.map { " --layout \(CaptureFormat.quoted($0))" } ?? ""
    let name = file == "-" ? "FILE" : CaptureFormat.quoted(file)
    return """
      \(file == "-" ? "standard input" : file) is a capture file (\(rawValue)), but decode reads \
      byte streams. Extract them with tshark, with your server's port in place of 9000:
        tshark -r \(name) -Y 'tcp.port==9000 && tcp.len>0' -T fields \(columns) \
      | longlink decode\(options)
      """
  }

  /// Quotes a word for a shell.
  private static func quoted(_ word: String) -> String {
    let isPlain = word.allSatisfy { character in
      character.isASCII && (character.isLetter || character.isNumber || "/._-".contains(character))
    }
    return isPlain ? word : "'\(word.replacing("'", with: "'\\''"))'"
  }
}
