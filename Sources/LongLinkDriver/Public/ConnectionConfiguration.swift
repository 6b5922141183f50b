// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// What the configurations of clients and servers have in common: the options of a connection.
package protocol ConnectionConfiguration {
  var dialect: Dialect { get }
  var heartbeat: Heartbeat { get }
  var timeout: Duration { get }
  var frameTimeout: Duration { get }
  var maxBody: Int { get }
  var maxInFlight: Int { get }
  var maxRequestBytes: Int { get }
  var maxUnreadOutput: Int { get }
  var waterMarks: WaterMarks { get }
  var streamWindows: StreamWindows { get }
  var name: String { get }
  var observers: Observers? { get }
}

extension ConnectionConfiguration {
  /// Throws `invalidConfiguration`, with the field's name, if one of these options is out of range.
  package func validateConnection(_ role: Role) throws(LongLinkError) {
    try positive(timeout, "timeout")
    try positive(frameTimeout, "frameTimeout")
    try heartbeat.validate(field: "heartbeat")
    try dialect.validate(role, field: "dialect")
    try atLeast(1, maxInFlight, "maxInFlight")
    if maxBody < 1 || maxBody > 1 << 31 {
      throw .configuration("maxBody", "\(maxBody) is not between 1 and 2,147,483,648")
    }
    if maxRequestBytes < maxBody {
      throw .configuration("maxRequestBytes", "\(maxRequestBytes) is below maxBody")
    }
    try waterMarks.validate(field: "waterMarks")
    try streamWindows.validate(field: "streamWindows")
    if maxUnreadOutput < waterMarks.high {
      throw .configuration("maxUnreadOutput", "\(maxUnreadOutput) is below waterMarks.high")
    }
    if name.utf8.contains(0) { throw .configuration("name", "it contains a NUL") }
    if name.utf8.count > Wire.nameLimit {
      throw .configuration("name", "it is longer than 1,024 bytes")
    }
  }

  /// Returns the settings of a connection, with the framing of the dialect.
  package func settings(
    of role: Role, dialect framing: (any DialectFraming)?
  ) -> ConnectionSettings {
    var settings = ConnectionSettings(role: role)
    let heartbeat = dialect.heartbeat(heartbeat)
    settings.dialect = framing
    settings.reportsRefusals = observers != nil
    settings.maxBody = maxBody
    settings.maxInFlight = maxInFlight
    settings.maxRequestBytes = maxRequestBytes
    settings.windows = streamWindows
    settings.heartbeatInterval = heartbeat.interval.clampedNanoseconds
    settings.heartbeatTimeout = heartbeat.timeout.clampedNanoseconds
    settings.missedDeadlines = heartbeat.missedDeadlines
    settings.frameTimeout = frameTimeout.clampedNanoseconds
    settings.writingTimeout = (heartbeat.interval + heartbeat.timeout).clampedNanoseconds
    settings.maxUnread = maxUnreadOutput
    settings.waterMarks = waterMarks.limited(by: maxUnreadOutput)
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
