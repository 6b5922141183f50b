// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

extension SimulatedServer {
  /// All that was received up to now.
  public var record: PeerRecord { journal.record }

  /// All frames that were received up to now, in the order in which they came.
  public var received: [ReceivedFrame] { record.frames }

  /// The requests of one type that were received up to now.
  public func requests(of type: MessageType) -> [ReceivedMessage] {
    record.requests(of: type)
  }

  /// All requests that were received up to now.
  public var requests: [ReceivedMessage] { record.requests }

  /// All pushes that were received up to now.
  public var pushes: [ReceivedMessage] { record.pushes }

  /// The serials of the cancels that were received up to now.
  public var cancels: [UInt32] { record.frames(of: .cancel).map(\.serial) }

  /// What the hellos said that were received up to now and can be read.
  public var hellos: [GreetingFields] { record.frames(of: .hello).compactMap(\.helloFields) }

  /// How many connections were accepted up to now.
  public var connectionsAccepted: Int { record.connections }

  /// Waits until requests of a type have come, and returns the last one that was waited for.
  ///
  /// Throws `CancellationError` when the task is cancelled, or the server stopped, before that.
  @discardableResult
  public func waitForRequest(
    of type: MessageType,
    count: Int = 1
  ) async throws -> ReceivedMessage {
    precondition(count > 0, "at least one request is waited for")
    try await journal.wait { $0.count(.request, tag: type.rawValue) >= count }
    return requests(of: type)[count - 1]
  }

  /// Waits until pushes of a type have come, and returns the last one that was waited for.
  ///
  /// Throws `CancellationError` when the task is cancelled, or the server stopped, before that.
  @discardableResult
  public func waitForPush(
    of type: MessageType,
    count: Int = 1
  ) async throws -> ReceivedMessage {
    precondition(count > 0, "at least one push is waited for")
    try await journal.wait { $0.count(.push, tag: type.rawValue) >= count }
    return record.pushes(of: type)[count - 1]
  }

  /// Waits until so many connections have been accepted, counted from the start.
  ///
  /// Throws `CancellationError` when the task is cancelled, or the server stopped, before that.
  public func waitForConnections(_ count: Int) async throws {
    try await journal.wait { $0.connections >= count }
  }

  /// Waits until so many connections have ended, counted from the start; returns the endings.
  ///
  /// Throws `CancellationError` when the task is cancelled, or the server stopped, before that.
  @discardableResult
  public func waitForEndings(_ count: Int) async throws -> [ConnectionEnding] {
    try await journal.wait { $0.endings.count >= count }
    return record.endings
  }

  /// Waits until a condition on what was received holds; it is asked after each frame.
  ///
  /// Throws `CancellationError` when the task is cancelled, or the server stopped, before that.
  public func wait(until condition: @escaping @Sendable (PeerRecord) -> Bool) async throws {
    try await journal.wait(until: condition)
  }
}
