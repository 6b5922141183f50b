internal import CLongLinkDemo
package import LongLinkProtobufC

/// Asks for an empty answer after a time.
package struct SleepRequest: Equatable, Sendable {
  package var milliseconds: UInt32

  package init(milliseconds: UInt32 = 0) {
    self.milliseconds = milliseconds
  }
}

extension SleepRequest: ProtobufCBody {
  package static let layout = unsafe ProtobufCLayout<SleepRequest>(
    initialize: longlink__demo__sleep_request__init,
    fill: { message, value, _ in
      unsafe message.milliseconds = value.milliseconds
    },
    read: { message in
      unsafe SleepRequest(milliseconds: message.milliseconds)
    }
  )
}

/// Asks for a number of pushes.
package struct TicksRequest: Equatable, Sendable {
  package var count: UInt32
  package var intervalMilliseconds: UInt32
  package var messageType: UInt32

  package init(count: UInt32 = 0, intervalMilliseconds: UInt32 = 0, messageType: UInt32 = 0) {
    self.count = count
    self.intervalMilliseconds = intervalMilliseconds
    self.messageType = messageType
  }
}

extension TicksRequest: ProtobufCBody {
  package static let layout = unsafe ProtobufCLayout<TicksRequest>(
    initialize: longlink__demo__ticks_request__init,
    fill: { message, value, _ in
      unsafe message.count = value.count
      unsafe message.interval_milliseconds = value.intervalMilliseconds
      unsafe message.message_type = value.messageType
    },
    read: { message in
      unsafe TicksRequest(
        count: message.count,
        intervalMilliseconds: message.interval_milliseconds,
        messageType: message.message_type
      )
    }
  )
}

/// One of the pushes that were asked for.
package struct Tick: Equatable, Sendable {
  package var number: UInt64

  package init(number: UInt64 = 0) {
    self.number = number
  }
}

extension Tick: ProtobufCBody {
  package static let layout = unsafe ProtobufCLayout<Tick>(
    initialize: longlink__demo__tick__init,
    fill: { message, value, _ in
      unsafe message.number = value.number
    },
    read: { message in
      unsafe Tick(number: message.number)
    }
  )
}

/// Asks for an answer with a code other than 200.
package struct FailRequest: Equatable, Sendable {
  package var code: UInt32
  package var detail: String

  package init(code: UInt32 = 0, detail: String = "") {
    self.code = code
    self.detail = detail
  }
}

extension FailRequest: ProtobufCBody {
  package static let layout = unsafe ProtobufCLayout<FailRequest>(
    initialize: longlink__demo__fail_request__init,
    fill: { message, value, arena in
      unsafe message.code = value.code
      unsafe message.detail = try arena.string(value.detail)
    },
    read: { message in
      unsafe FailRequest(code: message.code, detail: ProtobufCField.string(message.detail))
    }
  )
}

/// What the server process has counted.
package struct StatsReply: Equatable, Sendable {
  package var sessions: UInt64
  package var requestsReceived: UInt64
  package var requestsRunning: UInt64
  package var requestsCancelled: UInt64
  package var responsesSent: UInt64
  package var protocolViolations: UInt64

  package init(
    sessions: UInt64 = 0,
    requestsReceived: UInt64 = 0,
    requestsRunning: UInt64 = 0,
    requestsCancelled: UInt64 = 0,
    responsesSent: UInt64 = 0,
    protocolViolations: UInt64 = 0
  ) {
    self.sessions = sessions
    self.requestsReceived = requestsReceived
    self.requestsRunning = requestsRunning
    self.requestsCancelled = requestsCancelled
    self.responsesSent = responsesSent
    self.protocolViolations = protocolViolations
  }
}

extension StatsReply: ProtobufCBody {
  package static let layout = unsafe ProtobufCLayout<StatsReply>(
    initialize: longlink__demo__stats_reply__init,
    fill: { message, value, _ in
      unsafe message.sessions = value.sessions
      unsafe message.requests_received = value.requestsReceived
      unsafe message.requests_running = value.requestsRunning
      unsafe message.requests_cancelled = value.requestsCancelled
      unsafe message.responses_sent = value.responsesSent
      unsafe message.protocol_violations = value.protocolViolations
    },
    read: { message in
      unsafe StatsReply(
        sessions: message.sessions,
        requestsReceived: message.requests_received,
        requestsRunning: message.requests_running,
        requestsCancelled: message.requests_cancelled,
        responsesSent: message.responses_sent,
        protocolViolations: message.protocol_violations
      )
    }
  )
}
