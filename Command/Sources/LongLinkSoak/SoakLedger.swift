// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCommandSupport

/// The outcome of a request, as its caller saw it.
enum SoakOutcome: UInt8, CaseIterable, Sendable {
  case succeeded = 1
  /// Its handler ran and rejected it.
  case answered
  case refused
  case notSent
  case sent
  /// The response is not the one that the server sends for such a request.
  case unexpected

  /// From the least that is known of a request to the most: several uses of a ticket are one.
  private static let ranks: [SoakOutcome] = [
    .notSent, .refused, .sent, .answered, .succeeded, .unexpected,
  ]

  /// The outcome of a request that was made again, as its first use and the next one ended.
  func joined(_ next: SoakOutcome) -> SoakOutcome {
    SoakOutcome.ranks.last { $0 == self || $0 == next } ?? next
  }

  /// Describes the number of requests with this outcome.
  func text(_ count: Int) -> String {
    switch self {
    case .succeeded: "\(count.grouped) succeeded"
    case .answered: "\(count.grouped) rejected by their handlers"
    case .refused: "\(count.grouped) refused"
    case .notSent: "\(count.grouped) not sent"
    case .sent: "\(count.grouped) sent without a response"
    case .unexpected: "\(count.grouped) with an unexpected response"
    }
  }
}

/// One line of a ledger.
struct SoakRecord: Equatable, Sendable {
  enum Event: Equatable, Sendable {
    /// A client made a request.
    case started(SoakKind)
    /// The request ended at the client.
    case ended(SoakOutcome)
    /// A server ran the request's handler.
    case executed
    /// A client got a broadcast in a stretch with one connection, by its number, or in none (0).
    case received(client: UInt32, stretch: UInt32)
    /// A server did not send a broadcast to some client, whose output was full.
    case withheld
    /// A server made a payment, and gave it this receipt, below 2^48.
    case paid(UInt64)
    /// A server's record of a payment has this receipt.
    case kept(UInt64)
    /// A client was answered with this receipt.
    case answered(UInt64)
  }

  /// The request's idempotency key, or the broadcast's.
  let key: UInt64
  let event: Event

  static let size = 16

  var bytes: [UInt8] {
    let event: [UInt8] =
      switch self.event {
      case .started(let kind): [1, kind.rawValue]
      case .ended(let outcome): [2, outcome.rawValue]
      case .executed: [3]
      case .received(let client, let stretch):
        [4, 0] + SoakRecord.bytes(of: UInt64(client) << 24 | UInt64(stretch)).suffix(6)
      case .withheld: [5]
      case .paid(let receipt): SoakRecord.bytes(of: 6 << 56 | receipt)
      case .kept(let receipt): SoakRecord.bytes(of: 7 << 56 | receipt)
      case .answered(let receipt): SoakRecord.bytes(of: 8 << 56 | receipt)
      }
    return SoakRecord.bytes(of: key) + event + [UInt8](repeating: 0, count: 8 - event.count)
  }

  init(key: UInt64, _ event: Event) {
    self.key = key
    self.event = event
  }

  /// Decodes a record; nil if `bytes` is not one.
  init?(_ bytes: some RandomAccessCollection<UInt8>) {
    guard bytes.count == SoakRecord.size, let key = SoakRecord.key(in: bytes.prefix(8)) else {
      return nil
    }
    let parts = Array(bytes.dropFirst(8).prefix(2))
    let number = bytes.suffix(6).reduce(0) { $0 << 8 | UInt64($1) }
    switch (parts[0], parts[1]) {
    case (1, let raw):
      guard let kind = SoakKind(rawValue: raw) else { return nil }
      event = .started(kind)
    case (2, let raw):
      guard let outcome = SoakOutcome(rawValue: raw) else { return nil }
      event = .ended(outcome)
    case (3, 0):
      event = .executed
    case (4, 0):
      event = .received(client: UInt32(number >> 24), stretch: UInt32(number & 0xFF_FFFF))
    case (5, 0):
      event = .withheld
    case (6, 0):
      event = .paid(number)
    case (7, 0):
      event = .kept(number)
    case (8, 0):
      event = .answered(number)
    default:
      return nil
    }
    self.key = key
  }

  static func bytes(of key: UInt64) -> [UInt8] {
    stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: key >> $0) }
  }

  /// The key that a body, a ledger's line or metadata begins with.
  static func key(in bytes: some Collection<UInt8>) -> UInt64? {
    guard bytes.count >= 8 else { return nil }
    return bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}

/// A file that one process appends to, line by line.
///
/// Each line is one system call, so the lines survive when the process is killed.
final class SoakLedger: Sendable {
  private let descriptor: Int32

  init(path: String) throws {
    descriptor = unsafe open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw ChildFailure("cannot open the ledger \(path)") }
  }

  deinit { close(descriptor) }

  func append(_ record: SoakRecord) {
    let bytes = record.bytes
    // The array outlives the call.
    let written = unsafe bytes.withUnsafeBytes { buffer in
      unsafe write(descriptor, buffer.baseAddress, buffer.count)
    }
    // A missing line would count as a request that did not run.
    precondition(written == bytes.count, "the ledger cannot be written")
  }

  /// The lines of a file, and the payments in the file beside it.
  static func records(in path: String) throws -> [SoakRecord] {
    let data = try Data(contentsOf: URL(fileURLWithPath: path))
    let bytes = [UInt8](data)
    return try stride(from: 0, to: bytes.count, by: SoakRecord.size).map { start in
      guard let record = SoakRecord(bytes[start...].prefix(SoakRecord.size)) else {
        throw ChildFailure("the ledger \(path) is damaged")
      }
      return record
    } + SoakPayments.records(beside: path)
  }
}
