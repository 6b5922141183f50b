// SPDX-License-Identifier: Apache-2.0

import ChatMessages
import LongLinkServer

/// The rooms: their messages and members.
///
/// It lives on a separate event loop because it waits for the disk.
actor Rooms: ChatService {
  private struct Room {
    var messages: [Message] = []
    var numbers: [[UInt8]: UInt64] = [:]
    var members: [(peer: Peer, name: String)] = []
  }

  private var rooms: [String: Room] = [:]
  private let log: any MessageLog
  private let loop: EventLoop
  private let longestText = 4_000

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// Loads the messages of the log.
  init(_ log: any MessageLog, on loop: EventLoop) throws {
    self.log = log
    self.loop = loop
    for message in try log.load() {
      rooms[message.room, default: Room()].messages.append(message)
      rooms[message.room]?.numbers[message.id] = message.number
    }
  }

  /// Registers the rooms with a server, before it is started.
  nonisolated func register(with server: LongLinkServer) {
    server.register(chat: self)
    server.onPush(Typing.self) { [self] typing, peer in
      guard let typing = try? typing.get() else { return }
      loop.execute { self.assumeIsolated { $0.tell(typing.room, typing, except: peer.id) } }
    }
    server.onDisconnect { [self] peer in
      loop.execute { self.assumeIsolated { $0.ended(peer) } }
    }
  }

  // MARK: The service

  func join(_ request: JoinRequest, context: InboundRequest) -> JoinReply {
    var room = rooms[request.room] ?? Room()
    let isNew = !room.members.contains { $0.name == request.name }
    room.members.removeAll { $0.peer.id == context.peer.id }
    room.members.append((context.peer, request.name))
    rooms[request.room] = room
    if isNew {
      tell(request.room, presence(request.room, request.name, true), except: context.peer.id)
    }
    let names = Set(room.members.map(\.name)).sorted()
    return JoinReply(last: UInt64(room.messages.count), names: names)
  }

  func leave(_ request: LeaveRequest, context: InboundRequest) -> LeaveReply {
    remove(context.peer, from: request.room)
    return LeaveReply()
  }

  func send(_ request: SendRequest, context: InboundRequest) throws -> SendReply {
    if request.text.isEmpty { throw Rejection(.init(.emptyText)) }
    if request.text.utf8.count > longestText { throw Rejection(.init(.textTooLong)) }
    // It was sent before, and the response was lost.
    if let number = rooms[request.room]?.numbers[request.id] { return SendReply(number: number) }
    let last = rooms[request.room]?.messages.count ?? 0
    let message = Message(
      room: request.room, number: UInt64(last + 1), author: request.author, text: request.text,
      id: request.id)
    // It must be on the disk before it is published.
    try log.append(message)
    rooms[request.room, default: Room()].messages.append(message)
    rooms[request.room]?.numbers[request.id] = message.number
    tell(request.room, message)
    return SendReply(number: message.number)
  }

  func history(_ request: HistoryRequest, context: InboundRequest) -> HistoryReply {
    let messages = rooms[request.room]?.messages ?? []
    let limit = Int(min(request.limit, 100))
    // Message n is at index n - 1.
    if request.before > 0 {
      let end = Int(min(request.before - 1, UInt64(messages.count)))
      return HistoryReply(messages: Array(messages[max(0, end - limit)..<end]))
    }
    let start = Int(min(request.after, UInt64(messages.count)))
    return HistoryReply(messages: Array(messages[start...].prefix(limit)))
  }

  // MARK: The members

  private func tell(_ room: String, _ push: some PushMessage, except: UInt64? = nil) {
    for member in rooms[room]?.members ?? [] where member.peer.id != except {
      let peer = member.peer
      peer.loop.execute {
        // A client that is too slow must connect again, and fetches then what it has missed.
        do { try peer.pushNow(type(of: push).pushType, push) } catch { peer.close() }
      }
    }
  }

  private func ended(_ peer: Peer) {
    for room in rooms.keys.sorted() { remove(peer, from: room) }
  }

  private func remove(_ peer: Peer, from name: String) {
    guard let place = rooms[name]?.members.firstIndex(where: { $0.peer.id == peer.id }),
      let member = rooms[name]?.members.remove(at: place)
    else { return }
    // The same person may be in the room twice.
    if rooms[name]?.members.contains(where: { $0.name == member.name }) == true { return }
    tell(name, presence(name, member.name, false))
  }

  private func presence(_ room: String, _ name: String, _ isHere: Bool) -> Presence {
    Presence(room: room, name: name, isHere: isHere)
  }
}

extension ResponseCode {
  init(_ error: ChatError) {
    guard let code = ResponseCode(rawValue: error.rawValue) else {
      preconditionFailure("the codes of an application have at most 23 bits")
    }
    self = code
  }
}
