// SPDX-License-Identifier: Apache-2.0

/// Packets as `tcpdump` and `tshark` print them.
enum PacketDump {
  /// The columns that `tshark -T fields` must print, one `-e` for each.
  static let columns = [
    "tcp.stream", "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.payload",
  ]

  /// The streams in a dump of packets; nil if the lines are not one.
  static func streams(_ lines: [Substring]) throws -> [HexDump.Stream]? {
    var streams = TCPStreams()
    if lines.contains(where: { $0.hasPrefix("\t0x") }) {
      // `tcpdump -x`: each packet from its IP header on.
      let packets = try packets(lines.filter { $0.hasPrefix("\t0x") }) { line in
        (line.hasPrefix("\t0x0000:"), HexDump.digits(line))
      }
      for packet in packets { if let segment = TCPSegment(packet: packet) { streams.add(segment) } }
    } else if lines.contains(where: isRow) {
      // `tshark -x`: each packet with its link-layer header.
      let packets = try packets(lines.filter(isRow)) { line in
        (line.prefix { $0 != " " }.allSatisfy { $0 == "0" }, bytes(ofRow: line))
      }
      for packet in packets { if let segment = segment(inFrame: packet) { streams.add(segment) } }
    } else if let segments = fields(lines) {
      for segment in segments { streams.add(segment) }
    } else {
      return nil
    }
    return try streams.joined()
  }

  private static func packets(
    _ lines: [Substring], _ read: (Substring) -> (isFirst: Bool, bytes: [UInt8]?)
  ) throws -> [[UInt8]] {
    var packets: [[UInt8]] = []
    for line in lines {
      let (isFirst, bytes) = read(line)
      guard let bytes else {
        throw HexDump.Failure(
          description: "this line does not belong to a dump of packets: \(line.prefix(80))")
      }
      if isFirst || packets.isEmpty { packets.append([]) }
      packets[packets.count - 1] += bytes
    }
    return packets
  }

  // MARK: - tshark -x

  /// Whether a line is an offset of 4 or 6 digits, two spaces, and pairs of digits.
  private static func isRow(_ line: Substring) -> Bool {
    let offset = line.prefix { $0 != " " }
    guard offset.count == 4 || offset.count == 6, offset.allSatisfy(\.isHexDigit),
      line.dropFirst(offset.count).hasPrefix("  ")
    else { return false }
    let pair = line.dropFirst(offset.count + 2).prefix(3)
    return pair.count >= 2 && pair.prefix(2).allSatisfy(\.isHexDigit) && pair.last == " "
  }

  private static func bytes(ofRow line: Substring) -> [UInt8]? {
    // Sixteen pairs, each followed by a space; then the bytes as text.
    HexDump.bytes(line.drop { $0 != " " }.dropFirst(2).prefix(48).filter { $0 != " " })
  }

  /// The possible offsets of IP: raw IP, loopback, Ethernet, with a VLAN, and both "cooked" forms.
  private static let linkHeaders = [0, 4, 14, 18, 16, 20]

  private static func segment(inFrame frame: [UInt8]) -> TCPSegment? {
    for width in linkHeaders where frame.count > width + 20 {
      let packet = Array(frame[width...])
      if isCredible(packet), let segment = TCPSegment(packet: packet) { return segment }
    }
    return nil
  }

  /// Whether the checksum of an IPv4 header is right (RFC 791), or is left to the network card.
  private static func isCredible(_ packet: [UInt8]) -> Bool {
    guard packet[0] >> 4 == 4 else { return true }
    let width = Int(packet[0] & 15) * 4
    guard width >= 20, packet.count >= width else { return false }
    let sum = stride(from: 0, to: width, by: 2).reduce(0) { sum, place in
      sum + (Int(packet[place]) << 8 | Int(packet[place + 1]))
    }
    return packet[10...11].allSatisfy { $0 == 0 } || sum.isMultiple(of: 0xFFFF)
  }

  // MARK: - tshark -T fields

  /// The segments in the columns; nil if the lines are something else.
  private static func fields(_ lines: [Substring]) -> [TCPSegment]? {
    guard !lines.isEmpty else { return nil }
    var segments: [TCPSegment] = []
    for line in lines {
      let cells = line.split(separator: "\t", omittingEmptySubsequences: false)
      guard cells.count == columns.count, cells[..<3].allSatisfy({ UInt32($0) != nil }),
        let sequence = UInt32(cells[3]), let payload = HexDump.bytes(cells[4].filter { $0 != ":" })
      else { return nil }
      segments.append(
        TCPSegment(
          label: "connection \(cells[0]), port \(cells[1]) > \(cells[2])", sequence: sequence,
          payload: payload))
    }
    return segments
  }
}
