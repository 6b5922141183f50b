// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// The owner of keys: a principal, or a client without one.
///
/// Two principals can use the same key, and neither gets the other's answer.
public struct OnceScope: Hashable, Sendable, CustomStringConvertible {
  /// The bytes that tell the scope from all others: a byte for its kind, and then the principal's
  /// name in UTF-8, or the 32 bytes of the hash of a longer name or of a `client_id`. A server's
  /// scopes have 1 to 256 bytes. A database compares and stores these.
  public let bytes: [UInt8]

  /// The most bytes of a name that a server's scopes contain. A longer one is hashed, because an
  /// index of a database takes only so many bytes.
  package static let mostNameBytes = 255

  private static let principal = UInt8(ascii: "p")
  private static let longName = UInt8(ascii: "h")
  private static let client = UInt8(ascii: "c")

  /// Makes the scope that has these bytes, as a database has stored them; nil if they do not begin
  /// with one of the three kinds, or are those of a client without a hash.
  public init?(bytes: [UInt8]) {
    switch bytes.first {
    case Self.principal, Self.longName: break
    case Self.client where bytes.count > 1: break
    default: return nil
    }
    self.bytes = bytes
  }

  /// Makes the scope of a principal by its name, which a server's scopes contain if it has at most
  /// 255 bytes.
  public init(principal name: String) {
    bytes = [Self.principal] + name.utf8
  }

  /// Makes the scope of a principal by the SHA-256 of its name, as a server does if the name has
  /// more than 255 bytes.
  public init(principalHash: [UInt8]) {
    bytes = [Self.longName] + principalHash
  }

  /// Makes the scope of a client without a principal, by the SHA-256 of its `client_id`.
  public init(clientHash: [UInt8]) {
    bytes = [Self.client] + clientHash
  }

  /// The name of the principal; nil if the client has no principal, or one whose name is hashed.
  public var principal: String? {
    bytes[0] == Self.principal ? String(decoding: bytes.dropFirst(), as: UTF8.self) : nil
  }

  /// Whether it is the scope of a client without a principal. Anyone can make many of these, so
  /// that a store gives all of them together one share of its room.
  public var isAnonymous: Bool { Self.isAnonymous(bytes) }

  static func isAnonymous(_ bytes: [UInt8]) -> Bool { bytes[0] == client }

  /// The principal's name, escaped, or words: the bytes of a client without one are a secret.
  public var description: String {
    if isAnonymous { return "client without a principal" }
    return principal.map { "principal \(PeerText($0))" } ?? "principal with a long name"
  }
}

/// The SHA-256 of a request's payload.
public struct OnceFingerprint: Hashable, Sendable {
  private let first: UInt64
  private let second: UInt64
  private let third: UInt64
  private let fourth: UInt64

  /// Makes a fingerprint from the 32 bytes of a hash; nil for any other number of bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 32 else { return nil }
    first = UInt64(bigEndian: bytes, at: 0)
    second = UInt64(bigEndian: bytes, at: 8)
    third = UInt64(bigEndian: bytes, at: 16)
    fourth = UInt64(bigEndian: bytes, at: 24)
  }

  /// The hash as four numbers, each of eight bytes, the most significant one first.
  package init(_ first: UInt64, _ second: UInt64, _ third: UInt64, _ fourth: UInt64) {
    self.first = first
    self.second = second
    self.third = third
    self.fourth = fourth
  }

  /// The 32 bytes of the hash. Each access makes them anew.
  public var bytes: [UInt8] {
    let words = SIMD4(first.bigEndian, second.bigEndian, third.bigEndian, fourth.bigEndian)
    return unsafe withUnsafeBytes(of: words) { unsafe [UInt8]($0) }
  }
}

extension UInt64 {
  /// Eight bytes of an array, the most significant one first.
  init(bigEndian bytes: [UInt8], at start: Int) {
    self = 0
    for index in start..<start + 8 { self = self << 8 | UInt64(bytes[index]) }
  }
}

/// The identity of one begin of a record: where the record is, and a number that no other begin of
/// it has.
public struct OnceToken: Hashable, Sendable {
  /// The owner of the key.
  public let scope: OnceScope
  /// The message type of the request.
  public let type: MessageType
  /// The key that the client has chosen: 1 to 255 bytes.
  public let key: [UInt8]
  /// A number that the server has chosen, which no other begin of the record has.
  public let number: Int64

  /// Makes a token; `number` must be random, or one that no begin of this record has had.
  public init(scope: OnceScope, type: MessageType, key: [UInt8], number: Int64) {
    self.scope = scope
    self.type = type
    self.key = key
    self.number = number
  }
}
