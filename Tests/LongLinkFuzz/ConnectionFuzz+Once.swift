// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

// Requests that run once: what the owner of a connection does for them.
extension FuzzSide {
  /// Where the server keeps keys.
  var terms: OnceTerms {
    OnceTerms(space: KeySpace(1, 2), retention: 60_000, time: 1_000, readAt: now)
  }

  /// The metadata of a request of this side; that of one that runs once if it is wanted and agreed.
  func block(forOnce isWanted: Bool) throws(FuzzFailure) -> MetadataBlock {
    guard isWanted, let once = connection.agreement.once, role == .client else {
      return MetadataBlock([8, 1])
    }
    return try block(
      Metadata(idempotencyKey: [7], keySpace: once.space, keyTime: once.time(at: now)))
  }

  /// The metadata of a response that is about an earlier request, or has none.
  func replay(_ input: inout FuzzInput) throws(FuzzFailure) -> MetadataBlock? {
    guard connection.agreement.once != nil, role == .server, input.byte() & 1 == 0 else {
      return nil
    }
    return try block(Metadata(replayed: true))
  }

  private func block(_ metadata: Metadata) throws(FuzzFailure) -> MetadataBlock {
    do {
      return try metadata.encodedBlock()
    } catch {
      throw FuzzFailure("metadata could not be encoded")
    }
  }

  /// Refuses a request that was passed on although there is no room for it, as the owner does with
  /// a key that it does not know.
  func refuseOnce(_ arrival: Arrival) throws(FuzzFailure) -> Bool {
    guard connection.isOverloaded else { return false }
    let isOnce = arrival.hasMetadata && connection.inbox.metadata.last.keySpace != nil
    try expect(isOnce && connection.agreement.once != nil, "a request for which there is no room")
    connection.respond(connection.id(of: arrival), code: .overloaded, isRefused: true, [])
    return true
  }
}

extension Connection {
  /// Whether its owner decides about the client of the greeting.
  var decides: Bool { settings.identifies || asksForOnce }
}
