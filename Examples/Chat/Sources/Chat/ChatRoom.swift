// SPDX-License-Identifier: Apache-2.0

import ChatMessages
import LongLinkCalls

/// A client's view of a room: every message once and in order, even if the connection is lost.
final class ChatRoom: Sendable {
  enum Event: Equatable, Sendable {
    /// The room was entered, again after each reconnect: the names of those in it, with this
    /// client's, and the number of the last message.
    case entered([String], last: UInt64)
    case said(Message)
    case came(String)
    case went(String)
    case typing(String)
    case offline
    /// A message that the server rejected, and why.
    case refused(String, reason: String)
  }

  private enum Signal: Sendable {
    case connected
    case pushed(Message)
  }

  let name: String
  let room: String
  /// The events in the room, for one consumer.
  let events: AsyncStream<Event>

  private let api: CallClient
  private let random: @Sendable () -> UInt64
  private let tell: AsyncStream<Event>.Continuation
  // A push that is dropped here leaves a gap in the numbers, so its message is fetched.
  private let signals = AsyncStream.makeStream(
    of: Signal.self, bufferingPolicy: .bufferingNewest(256))
  private let outbox = AsyncStream.makeStream(of: SendRequest.self)

  init(
    _ room: String, as name: String, over api: CallClient,
    random: @escaping @Sendable () -> UInt64 = { .random(in: 0 ... .max) }
  ) {
    self.room = room
    self.name = name
    self.api = api
    self.random = random
    (events, tell) = AsyncStream.makeStream(of: Event.self)
  }

  /// Sends a message, as soon as there is a connection and after the earlier messages.
  func send(_ text: String) {
    let id = [random(), random()].flatMap { word in
      (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
    }
    outbox.continuation.yield(SendRequest(room: room, author: name, text: text, id: id))
  }

  /// The messages before a number, the newest first.
  func history(before number: UInt64) -> PagedList<Message, UInt64> {
    api.pages(from: number, size: 20) { [room] position, size in
      let request = HistoryRequest(room: room, before: position, limit: UInt32(size))
      return ChatMethods.history(request).map { reply in
        let oldest = reply.messages.first?.number ?? 1
        return Page(reply.messages.reversed(), next: oldest > 1 ? oldest : nil)
      }
    }
  }

  /// Tells the others that the user is typing, if there is a connection.
  func type() async {
    try? await api.client.push(Typing(room: room, name: name))
  }

  /// Follows the room until the task is cancelled or the client closed.
  func run() async {
    let client = api.client
    listen(to: client)
    await withDiscardingTaskGroup { group in
      group.addTask { [self] in
        for await state in client.states() {
          switch state {
          case .connected: signals.continuation.yield(.connected)
          case .waiting: tell.yield(.offline)
          default: break
          }
        }
        signals.continuation.finish()
        outbox.continuation.finish()
      }
      group.addTask { [self] in await deliver() }
      group.addTask { [self] in await follow() }
      _ = try? await client.connect()
    }
    tell.finish()
  }

  private func listen(to client: LongLinkClient) {
    let room = room
    client.onPush(Message.self) { [signals] message in
      if let message = try? message.get(), message.room == room {
        signals.continuation.yield(.pushed(message))
      }
    }
    client.onPush(Presence.self) { [tell] presence in
      guard let presence = try? presence.get(), presence.room == room else { return }
      tell.yield(presence.isHere ? .came(presence.name) : .went(presence.name))
    }
    client.onPush(Typing.self) { [tell] typing in
      if let typing = try? typing.get(), typing.room == room { tell.yield(.typing(typing.name)) }
    }
  }

  /// Sends one message after another, each until its outcome is known.
  private func deliver() async {
    for await request in outbox.stream {
      while !Task.isCancelled {
        do throws(CallError) {
          _ = try await api.call(ChatMethods.send, request)
          break
        } catch {
          if error.code == .closed { return }
          if error.delivery == .answered {
            tell.yield(.refused(request.text, reason: error.text))
            break
          }
          // It may have been published. Sent again with the same id, it is published only once.
          try? await api.client.loop.sleep(for: .seconds(1))
        }
      }
    }
  }

  /// Shows all messages in order: those pushed, and those missed.
  private func follow() async {
    var seen: UInt64?
    for await signal in signals.stream {
      do throws(CallError) {
        switch signal {
        case .connected:
          // Join first, so that pushes begin, then fetch the earlier messages: there is no gap.
          let reply = try await api.call(ChatMethods.join, JoinRequest(room: room, name: name))
          tell.yield(.entered(reply.names, last: reply.last))
          seen = seen ?? reply.last
          try await catchUp(&seen, to: reply.last)
        case .pushed(let message):
          // A push from before the room was entered is on the first page of the history.
          guard let last = seen, message.number > last else { continue }
          if message.number == last + 1 {
            tell.yield(.said(message))
            seen = message.number
          } else {
            try await catchUp(&seen, to: message.number)
          }
        }
      } catch {
        // Without a connection, the next one begins again. With one, begin again here.
        guard api.client.state.isConnected else { continue }
        try? await api.client.loop.sleep(for: .seconds(1))
        signals.continuation.yield(.connected)
      }
    }
  }

  /// Fetches missed messages. If it fails midway, `seen` is the last one that was shown.
  private func catchUp(_ seen: inout UInt64?, to last: UInt64) async throws(CallError) {
    while let number = seen, number < last {
      let request = HistoryRequest(room: room, after: number, limit: 100)
      let messages = try await api.call(ChatMethods.history, request).messages
      for message in messages {
        tell.yield(.said(message))
        seen = message.number
      }
      if messages.isEmpty { return }
    }
  }
}
