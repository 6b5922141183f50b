internal import CLongLinkControl
package import LongLinkCore
package import LongLinkProtobufC

extension Hello: ProtobufCBody {
  package static let layout = unsafe ProtobufCLayout<Hello>(
    initialize: longlink__control__hello__init,
    fill: { message, value, arena in
      unsafe message.version = value.version
      unsafe message.features = value.features
      unsafe message.max_body = value.maxBody
      unsafe message.max_in_flight = value.maxInFlight
      unsafe message.heartbeat_interval = value.heartbeatInterval
      unsafe message.heartbeat_timeout = value.heartbeatTimeout
      unsafe message.credential = try arena.bytes(value.credential)
      unsafe message.name = try arena.string(value.name)
      unsafe message.session = try arena.bytes(value.session)
      unsafe message.last_push = value.lastPush
    },
    read: { message in
      unsafe Hello(
        version: message.version,
        features: message.features,
        maxBody: message.max_body,
        maxInFlight: message.max_in_flight,
        heartbeatInterval: message.heartbeat_interval,
        heartbeatTimeout: message.heartbeat_timeout,
        credential: ProtobufCField.bytes(message.credential),
        name: ProtobufCField.string(message.name),
        session: ProtobufCField.bytes(message.session),
        lastPush: message.last_push
      )
    }
  )
}

extension Welcome: ProtobufCBody {
  package static let layout = unsafe ProtobufCLayout<Welcome>(
    initialize: longlink__control__welcome__init,
    fill: { message, value, arena in
      unsafe message.version = value.version
      unsafe message.features = value.features
      unsafe message.max_body = value.maxBody
      unsafe message.max_in_flight = value.maxInFlight
      unsafe message.heartbeat_interval = value.heartbeatInterval
      unsafe message.heartbeat_timeout = value.heartbeatTimeout
      unsafe message.session = try arena.bytes(value.session)
      unsafe message.resumed = value.resumed ? 1 : 0
      unsafe message.name = try arena.string(value.name)
    },
    read: { message in
      unsafe Welcome(
        version: message.version,
        features: message.features,
        maxBody: message.max_body,
        maxInFlight: message.max_in_flight,
        heartbeatInterval: message.heartbeat_interval,
        heartbeatTimeout: message.heartbeat_timeout,
        session: ProtobufCField.bytes(message.session),
        resumed: message.resumed != 0,
        name: ProtobufCField.string(message.name)
      )
    }
  )
}

extension GoAway: ProtobufCBody {
  package static let layout = unsafe ProtobufCLayout<GoAway>(
    initialize: longlink__control__go_away__init,
    fill: { message, value, arena in
      unsafe message.code = value.code
      unsafe message.reason = try arena.string(value.reason)
      unsafe message.requests_accepted = value.requestsAccepted
      unsafe message.spread = value.spread
      unsafe message.retry_after = value.retryAfter
      unsafe message.n_alternatives = value.alternatives.count
      unsafe message.alternatives = try arena.strings(value.alternatives)
    },
    read: { message in
      unsafe GoAway(
        code: message.code,
        reason: ProtobufCField.string(message.reason),
        requestsAccepted: message.requests_accepted,
        spread: message.spread,
        retryAfter: message.retry_after,
        alternatives: ProtobufCField.strings(message.alternatives, count: message.n_alternatives)
      )
    }
  )
}

extension Metadata: ProtobufCBody {
  package static let layout = unsafe ProtobufCLayout<Metadata>(
    initialize: longlink__control__metadata__init,
    fill: { message, value, arena in
      if let remaining = value.remaining {
        unsafe message.deadline_case = LONGLINK__CONTROL__METADATA__DEADLINE_REMAINING
        unsafe message.remaining = remaining
      }
      unsafe message.priority = value.priority
      unsafe message.idempotency_key = try arena.bytes(value.idempotencyKey)
      let entries = value.canonicalEntries
      unsafe message.n_entries = entries.count
      unsafe message.entries = try arena.messages(entries)
      unsafe message.retry_after = value.retryAfter
    },
    read: { message in
      let isLimited =
        unsafe message.deadline_case == LONGLINK__CONTROL__METADATA__DEADLINE_REMAINING
      var value = unsafe Metadata(
        remaining: isLimited ? message.remaining : nil,
        priority: message.priority,
        idempotencyKey: ProtobufCField.bytes(message.idempotency_key),
        entries: try ProtobufCField.messages(message.entries, count: message.n_entries),
        retryAfter: message.retry_after
      )
      value.entries = value.canonicalEntries
      return value
    }
  )
}

/// On the wire, an element of a map is a message of its own.
extension Metadata.Entry: ProtobufCBody {
  package static let layout = unsafe ProtobufCLayout<Metadata.Entry>(
    initialize: longlink__control__metadata__entries_entry__init,
    fill: { message, value, arena in
      unsafe message.key = try arena.string(value.key)
      unsafe message.value = try arena.string(value.value)
    },
    read: { message in
      unsafe Metadata.Entry(
        key: ProtobufCField.string(message.key),
        value: ProtobufCField.string(message.value)
      )
    }
  )
}
