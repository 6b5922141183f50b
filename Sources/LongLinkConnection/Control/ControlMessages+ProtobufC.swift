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
      unsafe message.credential = arena.bytes(value.credential)
      unsafe message.name = try arena.string(value.name)
      unsafe message.session = arena.bytes(value.session)
      unsafe message.last_push = value.lastPush
    },
    read: { reader in
      var value = Hello()
      while let field = try reader.next() {
        switch field {
        case 1: value.version = try reader.uint32()
        case 2: value.features = try reader.uint64()
        case 3: value.maxBody = try reader.uint32()
        case 4: value.maxInFlight = try reader.uint32()
        case 5: value.heartbeatInterval = try reader.uint32()
        case 6: value.heartbeatTimeout = try reader.uint32()
        case 7: value.credential = try reader.bytes()
        case 8: value.name = try reader.string()
        case 9: value.session = try reader.bytes()
        case 10: value.lastPush = try reader.uint64()
        default: try reader.skip()
        }
      }
      return value
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
      unsafe message.session = arena.bytes(value.session)
      unsafe message.resumed = value.resumed ? 1 : 0
      unsafe message.name = try arena.string(value.name)
    },
    read: { reader in
      var value = Welcome()
      while let field = try reader.next() {
        switch field {
        case 1: value.version = try reader.uint32()
        case 2: value.features = try reader.uint64()
        case 3: value.maxBody = try reader.uint32()
        case 4: value.maxInFlight = try reader.uint32()
        case 5: value.heartbeatInterval = try reader.uint32()
        case 6: value.heartbeatTimeout = try reader.uint32()
        case 7: value.session = try reader.bytes()
        case 8: value.resumed = try reader.bool()
        case 9: value.name = try reader.string()
        default: try reader.skip()
        }
      }
      return value
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
    read: { reader in
      var value = GoAway()
      while let field = try reader.next() {
        switch field {
        case 1: value.code = try reader.uint32()
        case 2: value.reason = try reader.string()
        case 3: value.requestsAccepted = try reader.uint64()
        case 4: value.spread = try reader.uint32()
        case 5: value.retryAfter = try reader.uint32()
        case 6: value.alternatives.append(try reader.string())
        default: try reader.skip()
        }
      }
      return value
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
      unsafe message.idempotency_key = arena.bytes(value.idempotencyKey)
      let entries = value.canonicalEntries
      unsafe message.n_entries = entries.count
      unsafe message.entries = try arena.messages(entries)
      unsafe message.retry_after = value.retryAfter
    },
    read: { reader in
      var value = Metadata()
      while let field = try reader.next() {
        switch field {
        case 1: value.remaining = try reader.uint32()
        case 2: value.priority = try reader.uint32()
        case 3: value.idempotencyKey = try reader.bytes()
        case 4: value.entries.append(try reader.message())
        case 5: value.retryAfter = try reader.uint32()
        default: try reader.skip()
        }
      }
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
    read: { reader in
      var value = Metadata.Entry(key: "", value: "")
      while let field = try reader.next() {
        switch field {
        case 1: value.key = try reader.string()
        case 2: value.value = try reader.string()
        default: try reader.skip()
        }
      }
      return value
    }
  )
}
