// SPDX-License-Identifier: Apache-2.0

/// Joins TCP segments into the streams that each side of each connection sent.
struct TCPStreams {
  /// The captured bytes of one side of a connection.
  private struct Flow {
    private struct Piece {
      /// The sequence number of its first byte, extended to 64 bits so that it does not wrap.
      let begin: Int64
      let bytes: ArraySlice<UInt8>
    }

    let label: String
    /// The stream's first sequence number; nil if the capture lacks the connection's beginning.
    private var first: Int64?
    /// In capture order.
    private var pieces: [Piece] = []
    /// The extended sequence number of the last segment.
    private var latest: Int64

    init(_ segment: TCPSegment) {
      label = segment.label
      latest = Int64(segment.begin)
      add(segment)
    }

    /// Whether a segment begins another connection between the same two ports.
    func isEnded(by segment: TCPSegment) -> Bool {
      guard segment.begins else { return false }
      return first.map { UInt32(truncatingIfNeeded: $0) != segment.begin } ?? !pieces.isEmpty
    }

    mutating func add(_ segment: TCPSegment) {
      let distance = Int32(bitPattern: segment.begin &- UInt32(truncatingIfNeeded: latest))
      latest += Int64(distance)
      if segment.begins { first = latest }
      if !segment.payload.isEmpty { pieces.append(Piece(begin: latest, bytes: segment.payload)) }
    }

    /// The bytes in sequence order: segments may be reordered and retransmitted.
    func joined() -> HexDump.Stream {
      var stream = HexDump.Stream(label: label)
      // Of equals the one captured first comes first: sorting is stable.
      let sorted = pieces.sorted { $0.begin < $1.begin }
      var next = first ?? sorted.first?.begin ?? 0
      for piece in sorted {
        if piece.begin > next { stream.gaps.append(stream.bytes.count) }
        // Retransmitted bytes are there already.
        let new = piece.bytes.dropFirst(Int(max(0, next - piece.begin)))
        guard !new.isEmpty else { continue }
        stream.bytes += new
        next = piece.begin + Int64(piece.bytes.count)
      }
      return stream
    }
  }

  private var flows: [Flow] = []

  mutating func add(_ segment: TCPSegment) {
    if let index = flows.lastIndex(where: { $0.label == segment.label }),
      !flows[index].isEnded(by: segment)
    {
      flows[index].add(segment)
    } else {
      flows.append(Flow(segment))
    }
  }

  /// The streams, in the order in which they begin. Throws if there are no bytes.
  func joined() throws -> [HexDump.Stream] {
    let streams = flows.map { $0.joined() }.filter { !$0.bytes.isEmpty }
    guard !streams.isEmpty else {
      throw HexDump.Failure(description: "the packets of this dump carry no bytes over TCP")
    }
    return streams
  }
}

/// A TCP segment.
struct TCPSegment {
  /// The sender and the receiver.
  let label: String
  let sequence: UInt32
  let begins: Bool
  let payload: ArraySlice<UInt8>

  /// The sequence number of its first byte: SYN consumes one (RFC 9293, section 3.4).
  var begin: UInt32 { begins ? sequence &+ 1 : sequence }

  /// A segment from tshark's fields.
  init(label: String, sequence: UInt32, payload: [UInt8]) {
    self.label = label
    self.sequence = sequence
    begins = false
    self.payload = payload[...]
  }

  /// The segment in an IP packet; nil for any other packet, or a truncated one.
  init?(packet: [UInt8]) {
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
