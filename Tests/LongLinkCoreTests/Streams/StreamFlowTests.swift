// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore
import Testing

/// The applications of two sides that exchange items at random, and note what comes.
private final class Flow {
  struct Direction {
    var items: [[UInt8]] = []
    var written = 0
    var received: [[UInt8]] = []
    var isOver = false
  }

  struct Exchange {
    let serial: UInt32
    let asker: Side
    let answerer: Side
    var up: Direction?
    var down: Direction?
    var code: UInt32?
  }

  let pair: ConnectionPair
  var exchanges: [UInt32: Exchange] = [:]
  var dice: Seeded
  var problems: [String] = []

  init(_ seed: UInt64) {
    var dice = Seeded(seed)
    pair = ConnectionPair(
      client: Flow.settings(.client, &dice), server: Flow.settings(.server, &dice),
      cutting: dice.below(4) == 0 ? .whole : .random, seed: seed)
    self.dice = dice
    for number in 0..<UInt32(1 + dice.below(5)) { open(50 + number, by: pair.client, pair.server) }
    for number in 0..<UInt32(dice.below(3)) {
      open(0x8000_0032 + number, by: pair.server, pair.client)
    }
  }

  private static func settings(_ role: Role, _ dice: inout Seeded) -> ConnectionSettings {
    ConnectionSettings(role) {
      $0.maxBody = [2_000, 100_000, 400_000][dice.below(3)]
      $0.windows.first = [1_024, 1_500, 65_536][dice.below(3)]
      $0.windows.largest = [1_024, 100_000, 4_194_304][dice.below(3)]
      if dice.below(3) == 0 { $0.encodeLimit = 1_000 + dice.below(100_000) }
    }
  }

  private func items(for receiver: Side) -> [[UInt8]] {
    let limit = receiver.connection.settings.maxBody
    return (0..<dice.below(12)).map { _ in
      dice.bytes(dice.below(min(limit, [1, 100, 3_000, 200_000][dice.below(4)]) + 1))
    }
  }

  private func open(_ serial: UInt32, by asker: Side, _ answerer: Side) {
    let shape = 1 + dice.below(3)
    var exchange = Exchange(serial: serial, asker: asker, answerer: answerer)
    if shape & 1 != 0 { exchange.up = Direction(items: items(for: answerer)) }
    if shape & 2 != 0 { exchange.down = Direction(items: items(for: asker)) }
    exchanges[serial] = exchange
    asker.stream(
      serial, credit: shape & 2 != 0 ? UInt32([1_024, 1_025, 70_000][dice.below(3)]) : nil,
      items: shape & 1 != 0, priority: UInt32(dice.below(3)),
      [UInt8](
        repeating: 1, count: dice.below(min(200_000, asker.connection.agreement.maxBody - 20))))
  }

  /// Something that may happen at any time; false if it changes nothing.
  func step() -> Bool {
    let serials = exchanges.keys.sorted()
    let serial = serials[dice.below(serials.count)]
    let side = dice.below(2) == 0 ? pair.client : pair.server
    let hasMoved: Bool
    switch dice.below(8) {
    case 0: hasMoved = write(serial, isUp: true)
    case 1: hasMoved = write(serial, isUp: false)
    case 2: hasMoved = take(serial, 1 + dice.below(3))
    case 3: hasMoved = answer(serial)
    case 4:
      side.room = dice.below(3) == 0 ? .max : 1 + dice.below(100_000)
      hasMoved = false
    default: hasMoved = pair.move()
    }
    pair.client.flush()
    pair.server.flush()
    note()
    return hasMoved
  }

  /// Everything that can happen now; false if nothing can.
  func stepAll() -> Bool {
    pair.client.room = .max
    pair.server.room = .max
    pair.client.flush()
    pair.server.flush()
    var hasMoved = pair.move()
    note()
    for serial in exchanges.keys.sorted() {
      hasMoved = write(serial, isUp: true) || hasMoved
      hasMoved = write(serial, isUp: false) || hasMoved
      hasMoved = take(serial, .max) || hasMoved
      hasMoved = answer(serial) || hasMoved
    }
    note()
    return hasMoved
  }

  private func write(_ serial: UInt32, isUp: Bool) -> Bool {
    guard var exchange = exchanges[serial] else { return false }
    let side = isUp ? exchange.asker : exchange.answerer
    guard var direction = isUp ? exchange.up : exchange.down, !side.sending.contains(serial),
      isUp || side.running[serial] != nil
    else { return false }
    if direction.written < direction.items.count {
      let placement = side.write(serial, direction.items[direction.written])
      if placement == .ended { problems.append("an item was not taken") }
      direction.written += 1
    } else if isUp, !direction.isOver {
      side.endItems(serial)
      direction.isOver = true
    } else {
      return false
    }
    if isUp { exchange.up = direction } else { exchange.down = direction }
    exchanges[serial] = exchange
    return true
  }

  private func take(_ serial: UInt32, _ count: Int) -> Bool {
    guard let exchange = exchanges[serial] else { return false }
    var hasTaken = false
    for side in [exchange.asker, exchange.answerer] where side.untaken[serial]?.isEmpty == false {
      side.take(serial, count)
      hasTaken = true
    }
    return hasTaken
  }

  /// Responds once all items have been sent, and all have come.
  private func answer(_ serial: UInt32) -> Bool {
    guard let exchange = exchanges[serial] else { return false }
    let side = exchange.answerer
    guard side.running[serial] != nil, !side.sending.contains(serial),
      exchange.down.map({ $0.written == $0.items.count }) ?? true, hasEnded.contains(serial)
    else { return false }
    side.respond(serial, [8])
    return true
  }

  private var hasEnded: Set<UInt32> = []

  private func note() {
    for side in [pair.client, pair.server] {
      for event in side.takeEvents() { note(event, side) }
      let connection = side.connection.settings
      let most = connection.windows.total + connection.maxBody + 100_000
      if side.connection.streams.reserved > most { problems.append("too much is reserved") }
    }
  }

  private func note(_ event: Event, _ side: Side) {
    switch event {
    case .item(let serial, let body):
      if side === exchanges[serial]?.asker {
        exchanges[serial]?.down?.received.append(body)
      } else {
        exchanges[serial]?.up?.received.append(body)
      }
    case .request(let serial, _, _, _):
      if exchanges[serial]?.up == nil { hasEnded.insert(serial) }
    case .end(let serial): hasEnded.insert(serial)
    case .response(let serial, let code, _, _, let body):
      exchanges[serial]?.code = code
      if body != [8] { problems.append("another response") }
    // An end may cross credit.
    case .itemSent, .began, .finished, .resumeSending, .dropped(.lateCredit): break
    default: problems.append("\(event)")
    }
  }

  var isOver: Bool { exchanges.values.allSatisfy { $0.code != nil } }

  func check() {
    for exchange in exchanges.values {
      if exchange.code != 200 { problems.append("\(exchange.serial): no response") }
      for direction in [exchange.up, exchange.down] {
        if let direction, direction.received != direction.items {
          problems.append(
            "\(exchange.serial): \(direction.items.map(\.count)) came as "
              + "\(direction.received.map(\.count))")
        }
      }
    }
  }
}

@Suite struct StreamFlowTests {
  @Test(arguments: 0..<200)
  func `nobody is stuck, and every item arrives once and in order`(seed: Int) {
    let flow = Flow(UInt64(seed))
    for _ in 0..<400 where !flow.isOver && flow.problems.isEmpty { _ = flow.step() }
    while !flow.isOver, flow.problems.isEmpty {
      guard flow.stepAll() else {
        Issue.record("seed \(seed) is stuck")
        return
      }
    }
    flow.check()
    #expect(flow.problems == [], "seed \(seed)")
    #expect(flow.pair.client.isIdle && flow.pair.server.isIdle)
    #expect(flow.pair.client.connection.streams.reserved == 0)
    #expect(flow.pair.server.connection.streams.heldBytes == 0)
  }
}
