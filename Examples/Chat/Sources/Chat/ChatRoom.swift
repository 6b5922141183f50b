// SPDX-License-Identifier: Apache-2.0

import ChatMessages
import LongLinkCalls

/// A room as one client sees it: every message once and in order, whatever becomes of the
/// connection.
final class ChatRoom: Sendable {
  enum Event: Equatable, Sendable {
    /// The room was entered, again after each reconnect: who is there, oneself included, and the
    /// number of the last message.
    case entered([String], last: UInt64)
    case said(Message)
    case came(String)
    case went(String)
    case typing(String)
    case offline
    /// A message that the server does not take, and why.
    case refused(String, reason: String)
  }

  private enum Signal: Sendable {
    case connected
    case pushed(Message)
  }

  let name: String
  let room: String
  /// What happens in the room, for one consumer.
  let events: AsyncStream<Event>

  private let api: CallClient
  private let random: @Sendable () -> UInt64
  private let tell: AsyncStream<Event>.Continuation
  // What is lost here leaves a gap in the numbers, and is asked for.
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

  /// Says something: it is sent when there is a connection, in the order of the calls.
  func send(_ text: String) {
    let id = [random(), random()].flatMap { word in
      (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
    }
    outbox.continuation.yield(SendRequest(room: room, author: name, text: text, id: id))
  }

  /// What was said before a message, the newest first.
  func history(before number: UInt64) -> PagedList<Message, UInt64> {
    api.pages(from: number, size: 20) { [room] page in
      let request = HistoryRequest(room: room, before: page.position, limit: UInt32(page.size))
      return ChatMethods.history(request).map { reply in
        let oldest = reply.messages.first?.number ?? 1
        return Page(reply.messages.reversed(), next: oldest > 1 ? oldest : nil)
      }
    }
  }

  /// Lets the others know that something is being written, if there is a connection.
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

  /// Sends one message after the other, each until it is known what became of it.
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
          // It may have been said or not. Sent again, with the same id, it is said once.
          try? await api.client.loop.sleep(for: .seconds(1))
        }
      }
    }
  }

  /// Shows each message in its turn: those pushed, and what was missed.
  private func follow() async {
    var seen: UInt64?
    for await signal in signals.stream {
      do throws(CallError) {
        switch signal {
        case .connected:
          // The pushes first, then what was said before them: nothing falls between.
          let reply = try await api.call(ChatMethods.join, JoinRequest(room: room, name: name))
          tell.yield(.entered(reply.names, last: reply.last))
          seen = seen ?? reply.last
          try await catchUp(&seen, to: reply.last)
        case .pushed(let message):
          // One that comes before the room was entered is among the first page of the history.
          guard let last = seen, message.number > last else { continue }
          if message.number == last + 1 {
            tell.yield(.said(message))
            seen = message.number
          } else {
            try await catchUp(&seen, to: message.number)
          }
        }
      } catch {
        // Without a connection the next one begins anew; with one, this has to.
        guard api.client.state.isConnected else { continue }
        try? await api.client.loop.sleep(for: .seconds(1))
        signals.continuation.yield(.connected)
      }
    }
  }

  /// Asks for what was missed. What has been shown stays so where it fails midway.
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
