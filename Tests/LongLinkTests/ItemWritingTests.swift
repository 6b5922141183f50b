// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkCore
@testable import LongLinkDriver

/// The sending half of a stream, without a link.
@Suite struct ItemWritingTests {
  /// The connection holds an item for which no call waits, and one waits behind it.
  @Test(arguments: [false, true])
  func `the time of items ends with the last that waits, unless a handler waits for them`(
    _ hasHandler: Bool
  ) async throws {
    let outcome: Result<Void, LongLinkError> = await suspend { waiter in
      var writing = ItemWriting()
      writing.passed(isTaken: true)
      let id = writing.append(.bytes([1]), waiter)
      let deadline = LinkInstant(nanoseconds: 100)
      writing.deadline = deadline
      if hasHandler { writing.whenWritten({}, orLate: {}) }
      let sender = writing.cancel(id)
      #expect(writing.deadline == (hasHandler ? deadline : .distantFuture))
      #expect(sender != nil && writing.isEmpty && !writing.isFlushed)
      sender?(.success(()))
    }
    try outcome.get()
  }
}
