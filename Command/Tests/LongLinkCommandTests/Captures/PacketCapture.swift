// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

/// TCP connections as a capture file has them: packets made up around bytes that were sent.
struct PacketCapture {
  private struct Packet {
    let stream: Int
    let sender: Role
    let flags: UInt8
    let payload: [UInt8]
    /// In microseconds.
    let time: Int64
  }

  /// The port that every server listens on.
  static let serverPort: UInt16 = 9000
  private static let (fin, syn, push, acknowledge): (UInt8, UInt8, UInt8, UInt8) = (1, 2, 8, 16)

  private var packets: [Packet] = []
  private var now: Int64 = 1_700_000_000_000_000
  private(set) var streams = 0

  /// Adds a connection: what the sides send, in this order, each part in one packet. One that is
  /// not whole was open before the capture began.
  mutating func add(_ parts: [(sender: Role, bytes: [UInt8])], isWhole: Bool = true) {
    let stream = streams
    streams += 1
    func packet(_ sender: Role, _ flags: UInt8, _ payload: [UInt8] = []) {
      now += 250
      packets.append(
        Packet(stream: stream, sender: sender, flags: flags, payload: payload, time: now))
    }
    if isWhole {
      packet(.client, Self.syn)
      packet(.server, Self.syn | Self.acknowledge)
      packet(.client, Self.acknowledge)
    }
    for part in parts where !part.bytes.isEmpty {
      // No packet is longer than what IPv4 can hold.
      for start in stride(from: 0, to: part.bytes.count, by: 60_000) {
        let end = min(start + 60_000, part.bytes.count)
        packet(part.sender, Self.push | Self.acknowledge, Array(part.bytes[start..<end]))
      }
    }
    packet(.client, Self.fin | Self.acknowledge)
    packet(.server, Self.fin | Self.acknowledge)
    packet(.client, Self.acknowledge)
  }

  /// The file, with raw IP packets.
  var file: [UInt8] { file(link: 101, header: []) }

  /// The file, in the format of libpcap (pcap-savefile(5)), with a type of link and what stands in
  /// front of each IP packet there.
  func file(link: UInt32, header: [UInt8]) -> [UInt8] {
    var file: [UInt8] = []
    func little(_ value: UInt32) { file += [0, 8, 16, 24].map { UInt8(value >> $0 & 255) } }
    little(0xA1B2_C3D4)
    file += [2, 0, 4, 0]
    for value: UInt32 in [0, 0, 262_144, link] { little(value) }
    var sequences: [[UInt32]] = Array(repeating: [1000, 5000], count: streams)
    for packet in packets {
      let (own, other) = packet.sender == .client ? (0, 1) : (1, 0)
      let next = sequences[packet.stream]
      let bytes =
        header + PacketCapture.packet(packet, sequence: next[own], acknowledged: next[other])
      let hasNumber = packet.flags & (Self.syn | Self.fin) != 0
      sequences[packet.stream][own] += UInt32(packet.payload.count) + (hasNumber ? 1 : 0)
      little(UInt32(packet.time / 1_000_000))
      little(UInt32(packet.time % 1_000_000))
      little(UInt32(bytes.count))
      little(UInt32(bytes.count))
      file += bytes
    }
    return file
  }

  private static func packet(
    _ packet: Packet, sequence: UInt32, acknowledged: UInt32
  ) -> [UInt8] {
    func big16(_ value: Int) -> [UInt8] { [UInt8(value >> 8 & 255), UInt8(value & 255)] }
    func big32(_ value: UInt32) -> [UInt8] { [24, 16, 8, 0].map { UInt8(value >> $0 & 255) } }
    let ports = [20_000 + packet.stream, Int(serverPort)]
    let isClient = packet.sender == .client
    var bytes: [UInt8] = [0x45, 0] + big16(40 + packet.payload.count) + [0, 1, 0x40, 0, 64, 6]
    bytes += [0, 0] + [127, 0, 0, 1, 127, 0, 0, 1]
    bytes += big16(isClient ? ports[0] : ports[1]) + big16(isClient ? ports[1] : ports[0])
    let isFirst = packet.flags == syn
    bytes += big32(sequence) + big32(isFirst ? 0 : acknowledged)
    bytes += [0x50, packet.flags, 0xFF, 0xFF, 0, 0, 0, 0]
    return bytes + packet.payload
  }
}
