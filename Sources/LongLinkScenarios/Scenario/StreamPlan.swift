// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
internal import LongLinkCore
internal import LongLinkTesting

/// A stream of a scenario: who sends which items, how fast, and how it ends.
struct StreamPlan: Hashable, Sendable {
  /// The sizes of the items of one side.
  enum Sizes: Hashable, Sendable {
    /// 0 to 40 bytes.
    case tiny
    /// 0 to 5,000 bytes.
    case medium
    /// 20,000 to 200,000 bytes: up to four frames.
    case large
  }

  /// The number of items of one side, and what happens to them.
  struct Items: Hashable, Sendable {
    var count = 0
    var sizes = Sizes.tiny
    /// The time that the writer takes for each item.
    var writePause = Duration.zero
    /// The time that the reader takes for each item.
    var readPause = Duration.zero
    /// The number of items after which the reader stops; nil if it reads all.
    var readerStopsAfter: Int?
    /// The number of items after which the writer fails; nil if it writes all.
    var writerFailsAfter: Int?

    /// The number of items that are written if nothing goes wrong.
    var written: Int { min(count, writerFailsAfter ?? count) }
  }

  /// The order of reading and writing in a handler.
  enum Order: CaseIterable, Hashable, Sendable {
    case readsFirst
    case writesFirst
    case alternates
    /// The handler reads and writes in two tasks.
    case both
    /// The handler writes in a task that it does not wait for: its response follows the last item.
    case leavesLast
  }

  /// The key of the stream's request, greater than ``firstKey``.
  var key: UInt64
  var at: Duration
  var client: Int
  /// Whether a server is the requester.
  var isFromServer: Bool
  var shape: StreamShape
  /// Whether the requester's task runs on its connection's loop.
  var isOnLoop: Bool
  /// Whether a callback, rather than an iterator, takes the items of the response.
  var usesCallbacks: Bool
  /// Whether the handler runs on another loop than its connection.
  var handlerIsElsewhere: Bool
  var order: Order
  var requestItems = Items()
  var responseItems = Items()
  var window: Int?
  var deadline: Duration?
  var itemTimeout: Duration?
  var cancelAfter: Duration?
  var waits: Bool?
  var priority: UInt32 = 0

  /// The keys of streams are greater than this number.
  static let firstKey: UInt64 = 2_000_000
  /// The keys of the streams after the faults are greater than this number.
  static let lastKey: UInt64 = 3_000_000

  /// The message type for the stream's shape and the placement of its handler.
  var type: MessageType { Self.type(shape, elsewhere: handlerIsElsewhere) }

  static func type(_ shape: StreamShape, elsewhere: Bool) -> MessageType {
    MessageType(integerLiteral: 10 + UInt32(shape.rawValue) + (elsewhere ? 10 : 0))
  }

  /// Whether the caller sees the stream's end at once, so that its deadline can be checked.
  var isPrompt: Bool {
    requestItems.writePause == .zero && responseItems.readPause == .zero
  }

  /// Makes the item with an index, from the side that writes it. Equal arguments give equal items.
  func item(_ index: Int, from writer: ItemLedger.Writer) -> [UInt8] {
    let items = writer == .requester ? requestItems : responseItems
    let purpose = key &* 2 &+ (writer == .requester ? 0 : 1)
    var dice = SeededGenerator(seed: purpose &* 0x9E37_79B9 ^ UInt64(index))
    let size =
      switch items.sizes {
      case .tiny: dice.int(0...40)
      case .medium: dice.int(0...5_000)
      case .large: dice.int(20_000...200_000)
      }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(size)
    for _ in 0..<min(size, 16) { bytes.append(UInt8(truncatingIfNeeded: dice.next())) }
    bytes += repeatElement(UInt8(truncatingIfNeeded: purpose), count: size - bytes.count)
    return bytes
  }

  /// The body of the stream's request and of its response.
  var body: ScenarioBody { ScenarioBody(key: key) }

  /// A stream in both directions that has to succeed after the faults.
  static func last(_ key: UInt64) -> StreamPlan {
    let items = Items(count: 5, sizes: .medium)
    return StreamPlan(
      key: key, at: .zero, client: 0, isFromServer: false,
      shape: [.requestItems, .responseItems], isOnLoop: true, usesCallbacks: false,
      handlerIsElsewhere: false, order: .alternates, requestItems: items, responseItems: items,
      deadline: .seconds(60), waits: true)
  }
}

extension ScenarioPlan {
  /// Draws the windows of all processes, and the streams.
  mutating func drawStreams(_ dice: inout SeededGenerator) {
    for _ in servers { serverWindows.append(Self.drawWindows(&dice)) }
    for _ in clients { clientWindows.append(Self.drawWindows(&dice)) }
    var times: [Duration] = []
    let count = dice.int(16...32)
    while times.count < count {
      // Half of them begin around a fault.
      var start = Duration.milliseconds(dice.int(0...580_000))
      if dice.chance(1, in: 2), !faults.isEmpty {
        start = dice.pick(faults).at - .milliseconds(dice.int(0...3_000))
      }
      for _ in 0..<dice.int(1...4) {
        times.append(max(.zero, start) + .milliseconds(dice.int(0...2_000)))
      }
    }
    times.sort()
    for time in times {
      let key = StreamPlan.firstKey + UInt64(streams.count + 1)
      streams.append(drawStream(key, at: time, &dice))
    }
  }

  private static func drawWindows(_ dice: inout SeededGenerator) -> StreamWindows {
    var windows = StreamWindows()
    windows.first = dice.pick([65_536, 65_536, 1_024, 5_000])
    windows.total = dice.pick([16_777_216, 16_777_216, 1_000_000, 200_000])
    windows.largest = max(windows.first, dice.pick([4_194_304, 300_000, 65_536]))
    return windows
  }

  private func drawStream(
    _ key: UInt64, at time: Duration, _ dice: inout SeededGenerator
  ) -> StreamPlan {
    let shape: StreamShape = dice.pick([
      .requestItems, .responseItems, .responseItems, [.requestItems, .responseItems],
    ])
    var plan = StreamPlan(
      key: key, at: time, client: dice.int(0...clients.count - 1),
      isFromServer: dice.chance(1, in: 8), shape: shape, isOnLoop: dice.chance(1, in: 2),
      usesCallbacks: shape == .responseItems && dice.chance(1, in: 4),
      handlerIsElsewhere: dice.chance(1, in: 3), order: dice.pick(StreamPlan.Order.allCases))
    if shape.contains(.requestItems) { plan.requestItems = drawItems(&dice) }
    if shape.contains(.responseItems) { plan.responseItems = drawItems(&dice) }
    plan.window = dice.pick([nil, nil, nil, 1_024, 4_000, 65_536, 500_000])
    plan.deadline = dice.pick([
      nil, nil, nil, .milliseconds(dice.int(1...2_000)), .milliseconds(dice.int(2_000...60_000)),
    ])
    plan.itemTimeout = dice.pick([nil, nil, nil, nil, .milliseconds(dice.int(500...20_000))])
    plan.cancelAfter = dice.chance(1, in: 8) ? .milliseconds(dice.int(0...3_000)) : nil
    plan.waits = dice.pick([nil, nil, true, false])
    plan.priority = dice.pick([0, 0, 0, 1, 7])
    return plan
  }

  private func drawItems(_ dice: inout SeededGenerator) -> StreamPlan.Items {
    var items = StreamPlan.Items()
    switch dice.int(0...99) {
    case ..<45: (items.sizes, items.count) = (.tiny, dice.int(0...100))
    case ..<78: (items.sizes, items.count) = (.medium, dice.int(0...40))
    default: (items.sizes, items.count) = (.large, dice.int(1...4))
    }
    // No stream takes longer than about twenty seconds of a healthy network.
    let longest = 10_000 / max(1, items.count)
    if dice.chance(1, in: 5) { items.writePause = .milliseconds(dice.int(0...longest)) }
    if dice.chance(1, in: 3) { items.readPause = .milliseconds(dice.int(0...longest)) }
    if dice.chance(1, in: 6) { items.readerStopsAfter = dice.int(0...items.count) }
    if dice.chance(1, in: 6) { items.writerFailsAfter = dice.int(0...items.count) }
    return items
  }
}
