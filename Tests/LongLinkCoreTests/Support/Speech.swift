// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDialects
import LongLinkTestSupport

/// The protocol that a connection speaks, and how it begins.
enum Speech: CaseIterable {
  case native
  case dialect
  /// The native protocol of a server that decides about each client first.
  case identifying
  /// One exchange of the native protocol.
  case short

  private static let small = Result { try FrameDialect.small(maximumBody: 4_000) }

  func settings(_ role: Role) throws -> ConnectionSettings {
    let framing: DialectCodec? =
      self == .dialect ? try DialectCodec(Self.small.get(), role: role, token: []) : nil
    return ConnectionSettings(role) {
      $0.dialect = framing
      $0.encodeLimit = self == .dialect ? 6_000 : 60_000
      $0.missedDeadlines = 1
      $0.maxInFlight = 3
      $0.identifies = self == .identifying
      $0.isShort = self == .short
    }
  }

  /// The frames that a connection in this role may get.
  func frames(to role: Role) throws -> [PhaseInput: [UInt8]] {
    guard self != .dialect else { return try Speech.dialectFrames(to: role) }
    var frames = Speech.nativeFrames.merging(Speech.streamFrames(to: role)) { first, _ in first }
    // A short link's ping has no number, because it is not answered.
    if self == .short { frames[.framePing] = RawFrame(.ping).bytes }
    return frames
  }

  /// The inputs that are frames in one of the protocols.
  static let frames = Set(nativeFrames.keys).union(streamFrames(to: .client).keys)

  private static let nativeFrames: [PhaseInput: [UInt8]] = [
    .frameHello: RawFrame(.hello, serial: 3, body: [0x10, 7]).bytes,
    .frameWelcome: RawFrame(.welcome, serial: 3, body: [0x10, 7]).bytes,
    .frameRequest: RawFrame(.request, tag: 1, serial: 50, body: [1]).bytes,
    .frameSecondRequest: RawFrame(.request, tag: 1, serial: 0x8000_0032).bytes,
    .frameFragment: RawFrame(.request, flags: .more, tag: 1, serial: 51, body: [1]).bytes,
    .frameResponse: RawFrame(.response, tag: 200, serial: 50, body: [1]).bytes,
    .framePush: RawFrame(.push, tag: 1, serial: 1, body: [1]).bytes,
    .frameCancel: RawFrame(.cancel, serial: 50).bytes,
    .framePing: RawFrame(.ping, body: [1]).bytes,
    .framePong: RawFrame(.pong, body: [0, 0, 0, 0, 0, 0, 0, 1]).bytes,
    .frameGoAway: RawFrame(.goaway, serial: 4, body: [0x08, 1]).bytes,
    .frameItem: RawFrame(.item, serial: 50).bytes,
    .frameIgnored: RawFrame(wire: 0x3A, body: [1]).bytes,
    .frameUnknown: RawFrame(wire: 0x1A, body: [1]).bytes,
    .frameDamaged: Array(RawFrame(.push, tag: 1, serial: 1, body: [1]).bytes.dropLast()) + [9],
    .frameHalf: Array(RawFrame(.push, tag: 1, serial: 1, body: [1]).bytes.prefix(9)),
    .emptyRead: [],
  ]

  /// The serial of the one stream that each side opens.
  static func stream(of role: Role) -> UInt32 { role == .client ? 5_000 : 0x8000_1388 }

  private static func streamFrames(to role: Role) -> [PhaseInput: [UInt8]] {
    let serial = stream(of: role.peer)
    let metadata: [UInt8] = [0, 5, 0x30, 0x80, 0x20, 0x38, 1]
    return [
      .frameStream: RawFrame(.request, flags: .metadata, tag: 1, serial: serial, body: metadata)
        .bytes,
      .frameStreamItem: RawFrame(.item, serial: serial, body: [1, 2]).bytes,
      .frameStreamPart: RawFrame(.item, flags: .more, serial: serial, body: [3]).bytes,
      .frameStreamEnd: RawFrame(.end, serial: serial).bytes,
      .frameStreamCredit: RawFrame(.credit, serial: serial, body: [0, 0, 16, 0]).bytes,
      .frameOwnItem: RawFrame(.item, serial: stream(of: role), body: [4]).bytes,
    ]
  }

  /// A dialect has no handshake, no fragments and no goaway.
  private static func dialectFrames(to role: Role) throws -> [PhaseInput: [UInt8]] {
    let peer = try DialectSide(small.get(), role == .client ? .server : .client)
    let (theirs, ours): (UInt32, UInt32) =
      role == .client ? (0x8000_0032, 50) : (50, 0x8000_0032)
    let push = peer.push(Speech.pushType(from: role == .client ? .server : .client), [1])
    var frames: [PhaseInput: [UInt8]] = [
      .frameRequest: peer.request(1, theirs, [1]),
      .frameSecondRequest: peer.request(1, theirs + 1),
      .frameResponse: peer.response(.ok, ours, to: 1, [1]),
      .framePush: push,
      .frameCancel: peer.cancel(theirs, of: 1),
      .frameUnknown: peer.response(.ok, ours + 5_000, to: 1),
      .frameDamaged: push.dropLast() + [9],
      .frameHalf: Array(push.prefix(9)),
      .emptyRead: [],
    ]
    // Clients send pings.
    frames[role == .client ? .framePong : .framePing] =
      role == .client ? peer.pong(1) : peer.ping(1)
    return frames
  }

  /// A type that a push of this side can have.
  static func pushType(from role: Role) -> UInt32 { role == .client ? 0xF100 : 0xF000 }
}
