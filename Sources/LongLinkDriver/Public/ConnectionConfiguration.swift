// SPDX-License-Identifier: Apache-2.0

package import Logging
package import LongLinkCore
package import LongLinkTransport

/// What the configurations of clients and servers have in common: the options of a connection.
package protocol ConnectionConfiguration {
  associatedtype Limits: ConnectionLimits
  associatedtype Timeouts: ConnectionTimeouts

  var dialect: Dialect { get }
  var heartbeat: Heartbeat { get }
  var limits: Limits { get }
  var timeouts: Timeouts { get }
  var name: String { get }
  var logger: Logger { get }
  var recorderBytes: Int { get }
  var recordsBodies: Bool { get }
  var observers: Observers? { get }
  var changesLogLevel: Bool { get }
}

package protocol ConnectionLimits {
  var maxBody: Int { get }
  var maxInFlight: Int { get }
  var maxRequestBytes: Int { get }
  var maxUnreadOutput: Int { get }
  var waterMarks: WaterMarks { get }
  var streamWindows: StreamWindows { get }
}

package protocol ConnectionTimeouts {
  var request: Duration { get }
  var frame: Duration { get }
}

extension ConnectionConfiguration {
  /// Throws `invalidConfiguration`, with the field's name, if one of these options is out of range.
  package func validateConnection(_ role: Role) throws(LongLinkError) {
    try positive(timeouts.request, "timeouts.request")
    try positive(timeouts.frame, "timeouts.frame")
    try heartbeat.validate(field: "heartbeat")
    try dialect.validate(role, field: "dialect")
    try validateLimits()
    if recorderBytes != 0, !(Recorder.leastCapacity...(1 << 30)).contains(recorderBytes) {
      throw .configuration(
        "recorderBytes", "\(recorderBytes) is neither 0 nor between 16,384 and 1,073,741,824")
    }
    if name.utf8.contains(0) { throw .configuration("name", "it contains a NUL") }
    if name.utf8.count > Wire.nameLimit {
      throw .configuration("name", "it is longer than 1,024 bytes")
    }
  }

  private func validateLimits() throws(LongLinkError) {
    try atLeast(1, limits.maxInFlight, "limits.maxInFlight")
    let (most, bytes, unread) = (limits.maxBody, limits.maxRequestBytes, limits.maxUnreadOutput)
    if most < 1 || most > 1 << 31 {
      throw .configuration("limits.maxBody", "\(most) is not between 1 and 2,147,483,648")
    }
    if bytes < most {
      throw .configuration("limits.maxRequestBytes", "\(bytes) is below limits.maxBody")
    }
    try limits.waterMarks.validate(field: "limits.waterMarks")
    try limits.streamWindows.validate(field: "limits.streamWindows")
    if unread < limits.waterMarks.high {
      throw .configuration("limits.maxUnreadOutput", "\(unread) is below limits.waterMarks.high")
    }
  }

  /// Records the links that begin on a loop from now on; its first owner with a recorder decides.
  /// `number` is that of the loop among those of its server. Call it on the loop.
  package func record(on loop: EventLoop, as number: UInt8 = 0) {
    #if Operations
    guard loop.recorder == nil, recorderBytes > 0 else { return }
    let epoch = loop.driver.unixNanoseconds - loop.driver.now.nanoseconds
    loop.recorder = Recorder(
      capacity: recorderBytes, recordsBodies: recordsBodies, epoch: epoch, loop: number)
    #endif
  }

  /// Returns the settings of a connection, with the framing of the dialect.
  package func settings(
    of role: Role, dialect framing: (any DialectFraming)?
  ) -> ConnectionSettings {
    var settings = ConnectionSettings(role: role)
    let heartbeat = dialect.heartbeat(heartbeat)
    settings.dialect = framing
    settings.usesOnce = role == .client
    settings.reportsRefusals = observers != nil || changesLogLevel || logger.logLevel <= .info
    settings.maxBody = limits.maxBody
    settings.maxInFlight = limits.maxInFlight
    settings.maxRequestBytes = limits.maxRequestBytes
    settings.windows = limits.streamWindows
    settings.heartbeatInterval = heartbeat.interval.clampedNanoseconds
    settings.heartbeatTimeout = heartbeat.timeout.clampedNanoseconds
    settings.missedDeadlines = heartbeat.missedDeadlines
    settings.frameTimeout = timeouts.frame.clampedNanoseconds
    settings.writingTimeout = (heartbeat.interval + heartbeat.timeout).clampedNanoseconds
    settings.maxUnread = limits.maxUnreadOutput
    settings.waterMarks = limits.waterMarks.limited(by: limits.maxUnreadOutput)
    settings.name = name
    return settings
  }

  /// Throws if a duration is not above zero.
  package func positive(_ duration: Duration, _ field: String) throws(LongLinkError) {
    if duration <= .zero { throw .configuration(field, "\(duration) is not above zero") }
  }

  /// Throws if a duration is negative.
  package func notNegative(_ duration: Duration, _ field: String) throws(LongLinkError) {
    if duration < .zero { throw .configuration(field, "\(duration) is negative") }
  }

  /// Throws if a number is below its least value.
  package func atLeast(_ least: Int, _ value: Int, _ field: String) throws(LongLinkError) {
    if value < least { throw .configuration(field, "\(value) is below \(least)") }
  }
}
