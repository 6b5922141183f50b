import LongLink
import LongLinkServer
import Testing

/// Wrong configuration throws before anything is opened, and names the field.
@Suite struct ConfigurationTests {
  typealias ClientCase = (field: String, change: @Sendable (inout ClientConfiguration) -> Void)
  typealias ServerCase = (field: String, change: @Sendable (inout ServerConfiguration) -> Void)

  static let clientCases: [ClientCase] = [
    ("servers", { $0.servers = [] }),
    ("servers[0]", { $0.servers = [.host("", port: 1)] }),
    ("servers[0]", { $0.servers = [.host("a\0b", port: 1)] }),
    ("servers[1]", { $0.servers.append(.host("host", port: 0)) }),
    ("servers[1]", { $0.servers.append(.unix(path: "")) }),
    ("servers[1]", { $0.servers.append(.unix(path: "/a\0")) }),
    ("deadline", { $0.deadline = .zero }),
    ("deadline", { $0.deadline = .seconds(-1) }),
    ("connectTimeout", { $0.connectTimeout = .zero }),
    ("frameTimeout", { $0.frameTimeout = .seconds(-1) }),
    ("heartbeat.interval", { $0.heartbeat.interval = .seconds(-1) }),
    ("heartbeat.interval", { $0.heartbeat.interval = .milliseconds(199) }),
    ("heartbeat.timeout", { $0.heartbeat.timeout = .milliseconds(99) }),
    ("reconnect.base", { $0.reconnect.base = .zero }),
    ("reconnect.cap", { $0.reconnect.cap = .milliseconds(1) }),
    ("reconnect", { $0.reconnect.afterClose = .seconds(-1) }),
    ("reconnect", { $0.reconnect.afterLostHeartbeat = .seconds(-1) }),
    ("maxWaiting", { $0.maxWaiting = -1 }),
    ("maxWaitingBytes", { $0.maxWaitingBytes = -1 }),
    ("resend.mostTimes", { $0.resend.mostTimes = -1 }),
    ("resend.mostTimes", { $0.resend.mostTimes = 101 }),
    ("resend.firstDelay", { $0.resend.firstDelay = .zero }),
    ("resend.longestDelay", { $0.resend.longestDelay = .milliseconds(99) }),
    ("resend.budget.capacity", { $0.resend.budget.capacity = -1 }),
    ("resend.budget.capacity", { $0.resend.budget.capacity = .infinity }),
    ("resend.budget.perSuccess", { $0.resend.budget.perSuccess = .nan }),
    ("waterMarks.high", { $0.waterMarks = WaterMarks(high: 0, low: 0) }),
    ("waterMarks.low", { $0.waterMarks.low = -1 }),
    ("waterMarks.low", { $0.waterMarks.low = $0.waterMarks.high }),
    ("waterMarks.large", { $0.waterMarks.large = 0 }),
    ("maxUnreadOutput", { $0.maxUnreadOutput = $0.waterMarks.high - 1 }),
    ("maxInFlight", { $0.maxInFlight = 0 }),
    ("maxBody", { $0.maxBody = 0 }),
    ("maxBody", { $0.maxBody = 1 << 31 + 1 }),
    ("name", { $0.name = "a\0b" }),
    ("name", { $0.name = String(repeating: "x", count: 1_025) }),
  ]

  static let serverCases: [ServerCase] = [
    ("listen", { $0.listen = [] }),
    ("listen[0]", { $0.listen = [.host("", port: 1)] }),
    ("listen[0]", { $0.listen = [.host("a\0b", port: 1)] }),
    ("listen[1]", { $0.listen.append(.unix(path: "")) }),
    ("listen[1]", { $0.listen.append(.unix(path: "/a\0b")) }),
    ("loops", { $0.loops = 0 }),
    ("maxSessions", { $0.maxSessions = 0 }),
    ("maxInFlight", { $0.maxInFlight = 0 }),
    ("maxBody", { $0.maxBody = 0 }),
    ("maxBody", { $0.maxBody = 1 << 31 + 1 }),
    ("maxAssembly", { $0.maxAssembly = $0.maxBody - 1 }),
    ("maxUnreadOutput", { $0.maxUnreadOutput = $0.maxBody - 1 }),
    ("maxUnreadOutput", { $0.waterMarks.high = $0.maxUnreadOutput + 1 }),
    ("waterMarks.high", { $0.waterMarks = WaterMarks(high: 0, low: 0) }),
    ("waterMarks.low", { $0.waterMarks.low = -1 }),
    ("waterMarks.low", { $0.waterMarks.low = $0.waterMarks.high }),
    ("firstFrameTimeout", { $0.firstFrameTimeout = .zero }),
    ("frameTimeout", { $0.frameTimeout = .seconds(-1) }),
    ("deadline", { $0.deadline = .zero }),
    ("drainSpread", { $0.drainSpread = .seconds(-1) }),
    ("heartbeat.interval", { $0.heartbeat.interval = .zero }),
    ("heartbeat.timeout", { $0.heartbeat.timeout = .zero }),
    ("name", { $0.name = "\0" }),
    ("name", { $0.name = String(repeating: "x", count: 1_025) }),
  ]

  @Test(arguments: clientCases.indices)
  func `a client's field is checked`(_ index: Int) throws {
    let (field, change) = Self.clientCases[index]
    var configuration = ClientConfiguration(servers: [.host("host", port: 1)])
    try configuration.validate()
    change(&configuration)
    let error = #expect(throws: LongLinkError.self) { try LongLinkClient(configuration) }
    #expect(error?.code == .invalidConfiguration)
    #expect(error?.operation == "check \(field)")
    #expect(error?.detail.isEmpty == false)
  }

  @Test(arguments: serverCases.indices)
  func `a server's field is checked`(_ index: Int) throws {
    let (field, change) = Self.serverCases[index]
    var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    try configuration.validate()
    change(&configuration)
    let error = #expect(throws: LongLinkError.self) { try LongLinkServer(configuration) }
    #expect(error?.code == .invalidConfiguration)
    #expect(error?.operation == "check \(field)")
    #expect(error?.detail.isEmpty == false)
  }
}
