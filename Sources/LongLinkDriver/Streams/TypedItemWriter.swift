// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// Sends messages as the items of one side of a stream. You can use it from any task.
public struct TypedItemWriter<Item: BodyEncodable & Sendable>: Sendable {
  /// The writer of the encoded items, for an ``ItemBroadcast`` for instance.
  public let writer: ItemWriter

  /// Makes a writer that encodes the items of the given one.
  public init(_ writer: ItemWriter) {
    self.writer = writer
  }

  /// Sends an item, after those that were written before.
  ///
  /// It returns when the whole item is on its way, and throws as ``ItemWriter`` does.
  public nonisolated(nonsending) func write(_ item: Item) async throws(LongLinkError) {
    try await writer.write(item)
  }

  /// Sends several items in order. From a task that does not run on the connection's loop it is
  /// much cheaper than several calls of `write`.
  public nonisolated(nonsending) func write(
    contentsOf items: [Item]
  ) async throws(LongLinkError) {
    try await writer.write(contentsOf: items)
  }

  /// Ends your items, after those that were written before: later writes throw `streamEnded`. The
  /// peer's items may go on. For the peer, the items of a responder end when it returns.
  public func finish() { writer.finish() }

  /// Waits until the exchange has ended, for whatever reason; returns, too, when the task is
  /// cancelled.
  public func waitForEnd() async { await writer.waitForEnd() }
}
