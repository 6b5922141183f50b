// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkCore

/// The message that was returned last, and its metadata.
@Suite struct InboxTests {
  /// A message whose body begins with this block of metadata.
  private func bring(_ block: [UInt8], _ payload: [UInt8], to inbox: inout Inbox) throws -> Arrival
  {
    let bytes = [UInt8(block.count >> 8), UInt8(block.count & 0xFF)] + block + payload
    let start = inbox.input.position + inbox.input.count
    unsafe inbox.input.append(bytes.span.bytes)
    let head = FrameHead(.push, flags: .metadata, tag: 1, serial: 1, length: bytes.count)
    return try inbox.arrival(head, BodySlice(start: start, count: bytes.count))
  }

  @Test func `metadata and payload are told apart`() throws {
    var inbox = Inbox()
    let block = try Metadata(priority: 3).encodedBytes()
    let message = try bring(block, [1, 2, 3], to: &inbox)
    try inbox.readMetadata(of: message)
    let payload = inbox.takeBytes(of: message.payload)
    #expect(payload == [1, 2, 3])
    #expect(inbox.metadata.last.priority == 3)
    // Repeated metadata is not read again, and a new one replaces it.
    try inbox.readMetadata(of: try bring(block, [], to: &inbox))
    #expect(inbox.metadata.last.priority == 3)
    try inbox.readMetadata(of: try bring(try Metadata(priority: 4).encodedBytes(), [], to: &inbox))
    #expect(inbox.metadata.last.priority == 4)
    inbox.forgetMessage()
    #expect(inbox.metadata.last.priority == 0)
  }

  @Test func `metadata has to fit, and to decode`() throws {
    var inbox = Inbox()
    let short: [UInt8] = [0, 5, 1]
    unsafe inbox.input.append(short.span.bytes)
    let head = FrameHead(.push, flags: .metadata, tag: 1, serial: 1, length: 3)
    var rules: [Violation.Rule] = []
    do {
      _ = try inbox.arrival(head, BodySlice(start: inbox.input.position, count: 3))
    } catch {
      rules.append(error.rule)
    }
    let message = try bring([0xFF], [], to: &inbox)
    do {
      try inbox.readMetadata(of: message)
    } catch {
      rules.append(error.rule)
    }
    #expect(rules == [.metadataTooLong, .malformedControl])
  }

  @Test func `joined fragments are moved out once, and forgotten with their message`() {
    var inbox = Inbox()
    let slice = inbox.assemble([9, 8, 7])
    let taken = inbox.takeBytes(of: slice)
    #expect(taken == [9, 8, 7] && inbox.assembled.isEmpty)
    _ = inbox.assemble([1])
    inbox.messageEnds()
    #expect(inbox.assembled.isEmpty)
  }

  @Test(
    arguments: [
      ([0x16, 0x03, 0x01], Role.client, true), ([0x15, 0x03], .server, true),
      ([0x16, 0x03], .server, false), ([0x16], .client, false), ([0x16, 0x04], .client, false),
    ] as [([UInt8], Role, Bool)])
  func `a record of TLS is recognised by its first bytes`(
    bytes: [UInt8], sender: Role, isRecord: Bool
  ) {
    var inbox = Inbox()
    unsafe inbox.input.append(bytes.span.bytes)
    let begins = inbox.beginsWithTLS(of: sender)
    #expect(begins == isRecord)
  }
}
