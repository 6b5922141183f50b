// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension Dialect {
  /// What the dialect lets a side do; nil for the native protocol.
  package func facts(_ role: Role) -> DialectFacts? { source?.facts(role) }

  /// Throws `invalidConfiguration` if the dialect cannot work in a role.
  package func validate(_ role: Role, field: String) throws(LongLinkError) {
    do throws(DialectTokenError) {
      try source?.validate(role)
    } catch {
      throw .configuration("\(field).token", error.description)
    }
  }

  /// Returns the effective heartbeat: a dialect's times replace the configured ones.
  package func heartbeat(_ configured: Heartbeat) -> Heartbeat {
    guard let facts = facts(.client) else { return configured }
    return Heartbeat(
      interval: facts.heartbeatInterval, timeout: facts.heartbeatTimeout,
      missedDeadlines: configured.missedDeadlines)
  }
}
