// SPDX-License-Identifier: Apache-2.0

/// The memory that decoding one body takes.
///
/// A decoder takes memory before it makes the values that need it. It gets an error instead if the
/// total would exceed the type's ``BodyDecodable/decodingMemoryLimit``, or, on a server, if
/// `limits.memoryLimit` leaves no room. The memory counts until the handler has returned.
public struct DecodingMemory: ~Copyable {
  /// The bytes that can be taken without asking the account.
  private(set) var left: Int
  /// The bytes that the account has counted for this body. They are given back when this ends.
  package private(set) var counted = 0
  private let type: any BodyDecodable.Type
  private let size: Int
  private let account: (any DecodingAccount)?

  /// The bytes that decoding may take uncounted, because each request counts as that many anyway.
  package static let free = 2_048
  /// The least number of bytes that is asked of the account at once.
  private static let lump = 16_384

  /// Makes the memory for decoding one body, limited only by the type's `decodingMemoryLimit`.
  public init(for type: (some BodyDecodable).Type) {
    self.init(for: type, account: nil)
  }

  /// Makes the memory for one body of a type, whose own `size` bytes count already.
  package init(
    for type: (some BodyDecodable).Type, account: consuming (any DecodingAccount)?,
    besides size: Int = 0
  ) {
    self.type = type
    self.size = size
    self.account = account
    left = min(DecodingMemory.free, type.decodingMemoryLimit)
  }

  /// Takes memory for a value.
  ///
  /// `count` is a number of bytes, not negative. Throws `tooLarge` if the total exceeds the limit
  /// of the type or all of a server's `limits.memoryLimit`, and `outOfMemory` if the server has too
  /// little memory left now.
  public mutating func take(_ count: Int) throws(BodyError) {
    left = try allowance(after: left - count)
  }

  /// Returns the bytes that can be taken without asking, when `rest` is left of the earlier ones.
  /// If `rest` is negative, more is taken from the account.
  @usableFromInline
  mutating func allowance(after rest: Int) throws(BodyError) -> Int {
    guard rest < 0 else { return rest }
    // A body that can never have enough memory is too large: a later retry would not help.
    let limit = min(type.decodingMemoryLimit, account?.most(besides: size) ?? .max)
    let most = limit - min(DecodingMemory.free, limit) - counted
    guard -rest <= most else {
      let isOfType = limit == type.decodingMemoryLimit
      let setting = isOfType ? "\(type).decodingMemoryLimit" : "by the server's limits.memoryLimit"
      throw BodyError(.tooLarge, detail: "decoding takes more than \(limit) bytes (\(setting))")
    }
    let more = min(most, max(-rest, DecodingMemory.lump))
    if let account {
      guard account.take(more, besides: counted) else {
        throw BodyError(.outOfMemory, detail: account.refusal)
      }
    }
    counted += more
    return rest + more
  }

  /// Takes back the part of the allowance that a reader has not used.
  @usableFromInline
  package mutating func end(_ allowance: Int) { left = allowance }

  /// Passes the bytes taken from the account to the caller, who must give them back. Nil if there
  /// are none, or if a decoder has replaced this memory by one without an account.
  package mutating func settle() -> (bytes: Int, account: any DecodingAccount)? {
    let taken = counted - min(left, counted)
    guard taken > 0, let account else { return nil }
    counted -= taken
    return (taken, account)
  }

  deinit {
    if counted > 0 { account?.giveBack(counted) }
  }
}

/// An account in which the memory of decoded bodies is counted; used on any thread.
package protocol DecodingAccount: AnyObject, Sendable {
  /// Counts `count` more bytes for a body that has `counted` already; returns false without room.
  func take(_ count: Int, besides counted: Int) -> Bool
  /// The most bytes that decoding can ever take for a body of `size` bytes, besides these.
  func most(besides size: Int) -> Int
  /// Counts `count` bytes less.
  func giveBack(_ count: Int)
  /// Why `take` has returned false.
  var refusal: String { get }
}

extension BodyDecodable {
  /// The most memory in bytes that decoding one body may take: `Int.max`, unless a type sets its
  /// own limit.
  public static var decodingMemoryLimit: Int { .max }

  /// Takes eight times the bytes of the body as an estimate, but at most 4 MiB more than its bytes,
  /// and decodes the body.
  public init(decoding body: RawSpan, charging memory: inout DecodingMemory) throws(BodyError) {
    try memory.take(min(body.byteCount * 8, body.byteCount + 4 << 20))
    try self.init(decoding: body)
  }
}
