// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension Dialect {
  /// What a side can do; nil for the native protocol.
  package func facts(_ role: Role) -> DialectFacts? { source?.facts(role) }

  /// Throws `invalidConfiguration` when it is known beforehand that it cannot work.
  package func validate(_ role: Role, field: String) throws(LongLinkError) {
    do throws(FrameLayoutError) {
      try source?.validate(role)
    } catch {
      throw .configuration("\(field).\(error.field)", error.reason)
    }
  }

  /// The heartbeat that holds: a dialect's own times in place of those that are configured.
  package func heartbeat(_ configured: Heartbeat) -> Heartbeat {
    guard let facts = facts(.client) else { return configured }
    return Heartbeat(
      interval: facts.heartbeatInterval, timeout: facts.heartbeatTimeout,
      missedDeadlines: configured.missedDeadlines)
  }
}
