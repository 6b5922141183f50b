/// What `tcpdump -x` prints: packets from their IP headers on.
enum TCPDump {
  /// The streams that the packets carry, by sender, in the order in which they begin.
  static func streams(_ lines: [Substring]) throws -> [HexDump.Stream] {
    var packets: [[UInt8]] = []
    for line in lines where line.hasPrefix("\t0x") {
      guard let bytes = HexDump.digits(line) else {
        throw HexDump.Failure(description: "this line is none of tcpdump: \(line.prefix(80))")
      }
      if line.hasPrefix("\t0x0000:") || packets.isEmpty { packets.append([]) }
      packets[packets.count - 1] += bytes
    }
    var flows: [Flow] = []
    for packet in packets {
      guard let segment = Segment(packet) else { continue }
      if let index = flows.firstIndex(where: { $0.stream.label == segment.label }) {
        flows[index].take(segment)
      } else {
        var flow = Flow(stream: HexDump.Stream(label: segment.label), next: segment.sequence)
        flow.take(segment)
        flows.append(flow)
      }
    }
    return flows.map(\.stream).filter { !$0.bytes.isEmpty }
  }

  private struct Flow {
    var stream: HexDump.Stream
    /// The sequence number of the next byte.
    var next: UInt32

    mutating func take(_ segment: Segment) {
      // SYN and FIN take a number each (RFC 9293, section 3.4).
      if segment.begins { next = segment.sequence &+ 1 }
      let begin = segment.begins ? segment.sequence &+ 1 : segment.sequence
      let behind = Int32(bitPattern: next &- begin)
      if behind < 0, !segment.payload.isEmpty { stream.gaps.append(stream.bytes.count) }
      // What was sent again is there already.
      let new = segment.payload.dropFirst(max(0, Int(behind)))
      guard !new.isEmpty else { return }
      stream.bytes += new
      next = begin &+ UInt32(segment.payload.count)
    }
  }

  /// A TCP segment; nil for any other packet, or one that was cut short.
  private struct Segment {
    let label: String
    let sequence: UInt32
    let begins: Bool
    let payload: ArraySlice<UInt8>

    init?(_ packet: [UInt8]) {
      guard packet.count >= 20 else { return nil }
      let (header, end): (Int, Int)
      let (source, target): (String, String)
      func dotted(_ start: Int) -> String {
        packet[start..<start + 4].map(String.init).joined(separator: ".")
      }
      func grouped(_ start: Int) -> String {
        stride(from: start, to: start + 16, by: 2).map { place in
          String(Int(packet[place]) << 8 | Int(packet[place + 1]), radix: 16)
        }.joined(separator: ":")
      }
      switch packet[0] >> 4 {
      case 4 where packet[9] == 6:
        header = Int(packet[0] & 15) * 4
        end = Int(packet[2]) << 8 | Int(packet[3])
        (source, target) = (dotted(12), dotted(16))
      case 6 where packet.count >= 40 && packet[6] == 6:
        header = 40
        end = 40 + (Int(packet[4]) << 8 | Int(packet[5]))
        (source, target) = ("[\(grouped(8))]", "[\(grouped(24))]")
      default: return nil
      }
      guard header >= 20, end >= header + 20, packet.count >= end else { return nil }
      let tcp = packet[header..<end]
      func word(_ offset: Int) -> Int {
        Int(packet[header + offset]) << 8 | Int(packet[header + offset + 1])
      }
      let data = Int(packet[header + 12] >> 4) * 4
      guard data >= 20, tcp.count >= data else { return nil }
      label = "\(source):\(word(0)) > \(target):\(word(2))"
      sequence = UInt32(word(4)) << 16 | UInt32(word(6))
      begins = packet[header + 13] & 2 != 0
      payload = tcp.dropFirst(data)
    }
  }
}
