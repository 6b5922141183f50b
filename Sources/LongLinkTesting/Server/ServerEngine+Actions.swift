// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

// How a script's actions are performed.
extension ServerEngine {
  func perform(_ pending: Pending) {
    guard let connection = connections[pending.request.connection] else { return }
    let type = pending.request.type
    switch pending.step {
    case .nothing:
      break
    case .frames(let make):
      for frame in make(pending.request) { connection.send(frame, about: type) }
    case .ownCode(let code, let body):
      let frame = WireFrame.response(to: pending.request.serial, body)
      connection.send(.bytes(connection.wire.bytes(of: frame, about: type, code: code)))
    case .corrupt(let make):
      connection.send(.bytes(connection.wire.corruptBytes(of: make(pending.request), about: type)))
    case .cut(let make, let count):
      let bytes = connection.wire.bytes(of: make(pending.request), about: type)
      connection.send(.bytes(Array(bytes.prefix(count))))
    case .raw(let make):
      connection.send(.bytes(make(pending.request)))
    case .dribble(let make, let interval):
      let bytes = connection.wire.bytes(of: make(pending.request), about: type)
      connection.send(.dribble(bytes, every: interval))
    case .ask(let type, let body):
      _ = ask(type, body, on: connection.number)
    case .goAway(let make):
      connection.send(make(connection.requestsBegun))
    case .end:
      connection.send(.end)
    case .endBelow:
      connection.endBelow()
    case .rawBelow(let bytes):
      connection.sendBelow(bytes)
    case .close:
      connection.send(.close)
    case .reset:
      connection.send(.reset)
    case .stopReading:
      connection.setReading(false)
    case .freeze:
      setFrozen(true)
    case .delay(let time, let step):
      delay(Pending(step: step, request: pending.request), by: time)
    case .all(let steps):
      performAll(steps[...], for: pending.request)
    case .pause, .wait:
      // Outside of a sequence, there is nothing to delay.
      break
    case .hold(let count, let order, let step):
      hold(Pending(step: step, request: pending.request), until: count, order)
    }
  }

  /// Performs steps in order. A pause or a wait postpones the remaining steps.
  private func performAll(_ steps: ArraySlice<ServerAction.Step>, for request: ReceivedMessage) {
    var rest = steps
    while let step = rest.popFirst() {
      let pending = Pending(step: .all(Array(rest)), request: request)
      switch step {
      case .pause(let time):
        return delay(pending, by: time)
      case .wait(let condition):
        let key = PeerRecord.StreamKey(connection: request.connection, serial: request.serial)
        if let stream = journal.record.stream(key.serial, on: key.connection), condition(stream) {
          continue
        }
        suspended[key, default: []].append(Suspended(condition: condition, pending: pending))
        return
      default:
        perform(Pending(step: step, request: request))
      }
    }
  }

  /// Continues the sequences whose condition on the frame's stream now holds.
  func resume(after frame: WireFrame, on connection: Int) {
    let key = PeerRecord.StreamKey(connection: connection, serial: frame.serial)
    guard !suspended.isEmpty, let waiting = suspended[key],
      let stream = journal.record.stream(frame.serial, on: connection)
    else { return }
    let ready = waiting.filter { $0.condition(stream) }
    guard !ready.isEmpty else { return }
    let rest = waiting.filter { !$0.condition(stream) }
    suspended[key] = rest.isEmpty ? nil : rest
    for next in ready { perform(next.pending) }
  }

  private func delay(_ pending: Pending, by time: Int64) {
    delaysMade += 1
    let timer = loop.schedule(at: loop.driver.now + max(time, 0), self, token: delaysMade)
    delayed[delaysMade] = Delayed(pending: pending, timer: timer)
  }

  private func hold(_ pending: Pending, until count: Int, _ order: ServerAction.Order) {
    let key = HoldKey(connection: pending.request.connection, type: pending.request.type)
    held[key, default: []].append(pending)
    guard let group = held[key], group.count >= count else { return }
    held[key] = nil
    switch order {
    case .asReceived: for pending in group { perform(pending) }
    case .reversed: for pending in group.reversed() { perform(pending) }
    case .shuffled:
      var chance = LoopChance(driver: loop.driver)
      for pending in group.shuffled(using: &chance) { perform(pending) }
    }
  }

  func releaseHeld() {
    let groups = held.values.flatMap(\.self).sorted {
      ($0.request.connection, $0.request.time, $0.request.serial)
        < ($1.request.connection, $1.request.time, $1.request.serial)
    }
    held = [:]
    for pending in groups { perform(pending) }
  }
}

extension ServerEngine: TimerHandler {
  func timerFired(token: UInt64) {
    guard let delayed = delayed.removeValue(forKey: token) else { return }
    perform(delayed.pending)
  }
}

/// A loop's source of randomness as a generator.
private struct LoopChance: RandomNumberGenerator {
  let driver: any LoopDriver

  func next() -> UInt64 { driver.nextRandom() }
}
