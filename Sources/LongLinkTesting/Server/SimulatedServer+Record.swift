// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

extension SimulatedServer {
  /// A snapshot of everything received so far, on all connections.
  public var record: PeerRecord { journal.record }

  /// All frames received so far, on all connections, in the order of arrival.
  public var received: [ReceivedFrame] { record.frames }

  /// Returns the requests of one type received so far, with fragments joined, in the order of
  /// completion.
  public func requests(of type: MessageType) -> [ReceivedMessage] {
    record.requests(of: type)
  }

  /// All requests received so far, with fragments joined, in the order of completion.
  public var requests: [ReceivedMessage] { record.requests }

  /// All pushes received so far, with fragments joined, in the order of completion.
  public var pushes: [ReceivedMessage] { record.pushes }

  /// All streams received so far, in the order of their first frames.
  public var streams: [ReceivedStream] { record.streams }

  /// Returns the streams whose requests have one type, in the order of their first frames.
  public func streams(of type: MessageType) -> [ReceivedStream] {
    record.streams(of: type)
  }

  /// The serials of the cancels received so far, on all connections, in the order of arrival.
  public var cancels: [UInt32] { record.frames(of: .cancel).map(\.serial) }

  /// The fields of all valid hellos received so far, on all connections, in the order of arrival.
  public var hellos: [GreetingFields] { record.frames(of: .hello).compactMap(\.helloFields) }

  /// The number of connections accepted so far, including those that have ended.
  public var connectionsAccepted: Int { record.connections }

  /// Waits until `count` requests of a type have arrived since the start, and returns the last of
  /// these. A `count` below 1 traps.
  ///
  /// Throws `CancellationError` if the task is cancelled or the server stops before that.
  @discardableResult
  public func waitForRequest(
    of type: MessageType, count: Int = 1, fileID: String = #fileID, line: Int = #line
  ) async throws -> ReceivedMessage {
    precondition(count > 0, "count has to be at least 1")
    let call = call("request \(count) of type \(type)", fileID, line)
    try await journal.wait(for: call) { $0.count(.request, tag: type.rawValue) >= count }
    return requests(of: type)[count - 1]
  }

  /// Waits until `count` pushes of a type have arrived since the start, and returns the last of
  /// these. A `count` below 1 traps.
  ///
  /// Throws `CancellationError` if the task is cancelled or the server stops before that.
  @discardableResult
  public func waitForPush(
    of type: MessageType, count: Int = 1, fileID: String = #fileID, line: Int = #line
  ) async throws -> ReceivedMessage {
    precondition(count > 0, "count has to be at least 1")
    let call = call("push \(count) of type \(type)", fileID, line)
    try await journal.wait(for: call) { $0.count(.push, tag: type.rawValue) >= count }
    return record.pushes(of: type)[count - 1]
  }

  /// Waits until there is a stream of a type for which a condition holds, and returns it as it was
  /// then.
  ///
  /// The condition is checked at once and after each frame. It must not block or use this server,
  /// because a lock is held. Throws `CancellationError` if the task is cancelled or the server
  /// stops before that.
  @discardableResult
  public func waitForStream(
    of type: MessageType,
    until condition: @escaping @Sendable (ReceivedStream) -> Bool = { _ in true },
    fileID: String = #fileID, line: Int = #line
  ) async throws -> ReceivedStream {
    try await waitForStream(
      of: type, count: 1, until: condition, call("a stream of type \(type)", fileID, line))
  }

  /// Waits until a condition holds for `count` streams of a type, and returns the last of these as
  /// it was at that moment.
  func waitForStream(
    of type: MessageType, count: Int,
    until condition: @escaping @Sendable (ReceivedStream) -> Bool, _ call: Journal.Call
  ) async throws -> ReceivedStream {
    precondition(count > 0, "count has to be at least 1")
    return try await journal.first(for: call) { record in
      record.streams.lazy.filter { $0.type == type && condition($0) }.dropFirst(count - 1).first
    }
  }

  /// Waits until `count` connections have been accepted since the start.
  ///
  /// Throws `CancellationError` if the task is cancelled or the server stops before that.
  public func waitForConnections(
    _ count: Int, fileID: String = #fileID, line: Int = #line
  ) async throws {
    try await journal.wait(for: call("connection \(count)", fileID, line)) {
      $0.connections >= count
    }
  }

  /// Waits until `count` connections have ended since the start, and returns the endings of all
  /// connections that have ended by then.
  ///
  /// Throws `CancellationError` if the task is cancelled or the server stops before that.
  @discardableResult
  public func waitForEndings(
    _ count: Int, fileID: String = #fileID, line: Int = #line
  ) async throws -> [ConnectionEnding] {
    try await journal.wait(for: call("the end of connection \(count)", fileID, line)) {
      $0.endings.count >= count
    }
    return record.endings
  }

  /// Waits until a condition on the record holds.
  ///
  /// The condition is checked at once and after each change. It must not block or use this server,
  /// because a lock is held. Throws `CancellationError` if the task is cancelled or the server
  /// stops before that.
  public func wait(
    until condition: @escaping @Sendable (PeerRecord) -> Bool, fileID: String = #fileID,
    line: Int = #line
  ) async throws {
    try await journal.wait(for: call("a condition", fileID, line), until: condition)
  }

  /// Describes a wait at this server, for the errors of a simulation.
  func call(_ subject: String, _ fileID: String, _ line: Int) -> Journal.Call {
    Journal.Call("\(subject), at the server \(address)", fileID, line)
  }
}
