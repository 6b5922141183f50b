// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLink
import LongLinkCommandSupport
import LongLinkTransport

/// Whether requests run once, and where the ticket of one is kept.
struct OnceOptions: ParsableArguments {
  @Flag(
    help: """
      Let each request run once. If its connection is lost, it is sent again until --timeout, and \
      the server answers from its record. The server needs `serve --once`.
      """)
  private var once = false

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      """
      Keep the ticket of the request in this file, from before it is first sent. If there is the \
      file, the request is repeated: it gets its answer, and does not run again. Repeat it with \
      the same type and body, and with the same --identity, --token or --tls-certificate, which \
      it needs. The time of --timeout is \
      also that of the work: when it passes, the server cancels the handler and keeps 408 as the \
      answer. The file stays, also after an answer; remove it to make a new request. Not with \
      --http or --count.
      """, valueName: "file"))
  private var ticket: String?

  func validate() throws {
    guard ticket != nil, !once else { return }
    throw ValidationError("--ticket needs --once.")
  }

  /// Whether the ticket of a request is kept in a file.
  var keepsTicket: Bool { ticket != nil }

  /// Reads the ticket of an earlier call; nil if there is no file.
  func keptTicket() throws -> OnceTicket? {
    guard let ticket else { return nil }
    return try OnceOptions.ticket(in: ticket) { file throws(FileError) in
      try file.readPrivate(limit: OnceOptions.limit)
    }
  }

  /// The ticket of the next request over a client that is connected; nil if requests do not run
  /// once. A new one is in the file before this returns.
  func makeTicket(for client: LongLinkClient) async throws -> OnceTicket? {
    guard once else { return nil }
    guard let ticket else {
      var random = SystemRandomNumberGenerator()
      return OnceTicket(key: (0..<16).map { _ in random.next() })
    }
    let made = try await client.ticket()
    guard let bytes = made.bytes else { preconditionFailure("a client's ticket has its bytes") }
    let kept = try OnceOptions.ticket(in: ticket) { file throws(FileError) in
      try file.readOrCreate(bytes, limit: OnceOptions.limit)
    }
    // Another call may have made the file at the same time.
    return kept?.key == made.key ? made : kept
  }

  /// A ticket has at most 280 bytes.
  private static let limit = 281

  /// The ticket in a file; nil if `read` finds no file.
  private static func ticket(
    in path: String, _ read: (SmallFile) throws(FileError) -> [UInt8]?
  ) throws -> OnceTicket? {
    let bytes: [UInt8]?
    do throws(FileError) {
      bytes = try read(SmallFile(path))
    } catch  where error.isUnprotected {
      throw Output.usageError("\(path): it belongs to another user, or others may read or write it")
    } catch {
      throw Output.usageError("\(error)")
    }
    guard let bytes else { return nil }
    guard let ticket = OnceTicket(bytes: bytes) else {
      throw Output.usageError("\(path): it has no ticket; name a file that does not exist yet")
    }
    return ticket
  }
}
