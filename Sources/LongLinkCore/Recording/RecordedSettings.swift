// SPDX-License-Identifier: Apache-2.0

/// The settings of a connection as numbers, in the event `began`. Of a credential it
/// has the size alone, and of what names the client, that there is something.
package struct RecordedSettings {
  /// How many numbers there are.
  package static let numbers = 25

  /// The settings; the credential has the right size, and is zeros, as is what names the client.
  package var settings: ConnectionSettings
  /// When the connection was made.
  package let instant: LinkInstant
  /// The number of the link among those of its client or server.
  package let id: UInt64
  /// Whether the connection has a dialect: then `settings` has none, and nothing can be replayed.
  package let hasDialect: Bool

  /// The numbers for settings of a link with this id.
  package static func encode(_ settings: ConnectionSettings, id: UInt64) -> [UInt64] {
    func bits(_ number: Int64) -> UInt64 { UInt64(bitPattern: number) }
    let flags: [Bool] = [
      settings.role == .server, settings.isShort, settings.dialect != nil, settings.identifies,
      settings.usesOnce, settings.reportsRefusals, settings.pace != nil,
      settings.cancelRate != nil, settings.clientID != nil,
    ]
    return [
      id, flags.enumerated().reduce(0) { $0 | ($1.element ? 1 << UInt64($1.offset) : 0) },
      UInt64(settings.maxBody), UInt64(settings.maxInFlight), UInt64(settings.maxRequestBytes),
      bits(settings.heartbeatInterval), bits(settings.heartbeatTimeout), bits(settings.pace ?? 0),
      UInt64(settings.missedDeadlines), bits(settings.handshakeTimeout),
      bits(settings.frameTimeout), bits(settings.messageTimeout), bits(settings.writingTimeout),
      UInt64(settings.maxUnread), UInt64(settings.encodeLimit),
      UInt64(settings.waterMarks.high), UInt64(settings.waterMarks.low),
      UInt64(settings.waterMarks.large), bits(settings.cancelRate?.interval ?? 0),
      bits(settings.cancelRate?.burst ?? 0), settings.features.rawValue,
      UInt64(settings.windows.first), UInt64(settings.windows.largest),
      UInt64(settings.windows.total), UInt64(settings.credential.count),
    ]
  }

  /// The settings of these numbers and this name; nil unless there are enough numbers, and all are
  /// in the range that a configuration can have.
  package init?(_ numbers: [UInt64], name: String, at instant: LinkInstant) {
    guard numbers.count == Self.numbers else { return nil }
    var next = numbers.makeIterator()
    var isValid = true
    func number() -> UInt64 { next.next() ?? 0 }
    func count() -> Int {
      let value = number()
      isValid = isValid && value <= UInt64(Int32.max) * 4
      return Int(clamping: value)
    }
    func time() -> Int64 { Int64(bitPattern: number()) }
    /// A time after which something is done again: at least 1 µs, so that it ends.
    func period() -> Int64 {
      let value = time()
      isValid = isValid && value >= 1_000
      return value
    }
    id = number()
    let flags = number()
    func flag(_ bit: UInt64) -> Bool { flags >> bit & 1 == 1 }
    var settings = ConnectionSettings(role: flag(0) ? .server : .client)
    settings.isShort = flag(1)
    hasDialect = flag(2)
    settings.identifies = flag(3)
    settings.usesOnce = flag(4)
    settings.reportsRefusals = flag(5)
    settings.maxBody = count()
    settings.maxInFlight = count()
    settings.maxRequestBytes = count()
    settings.heartbeatInterval = period()
    settings.heartbeatTimeout = period()
    let pace = time()
    isValid = isValid && (!flag(6) || pace >= 1_000)
    settings.pace = flag(6) ? pace : nil
    settings.missedDeadlines = count()
    settings.handshakeTimeout = time()
    settings.frameTimeout = time()
    settings.messageTimeout = time()
    settings.writingTimeout = period()
    settings.maxUnread = count()
    settings.encodeLimit = count()
    settings.waterMarks = WaterMarks(high: count(), low: count(), large: count())
    let (interval, burst) = (time(), time())
    settings.cancelRate = flag(7) ? TokenBucket.Rate(interval: interval, burst: burst) : nil
    settings.features = Features(rawValue: number())
    settings.windows.first = count()
    settings.windows.largest = count()
    settings.windows.total = count()
    let credential = count()
    guard isValid, credential <= Wire.credentialLimit, name == name.cutToName else { return nil }
    settings.credential = [UInt8](repeating: 0, count: credential)
    settings.clientID = flag(8) ? ClientID(0, 0) : nil
    settings.name = name
    self.settings = settings
    self.instant = instant
  }
}
