// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkDriver
import LongLinkServer
import LongLinkTransport
import Testing

/// Wrong configuration throws before anything is opened, and names the field.
@Suite struct ConfigurationTests {
  typealias ClientCase = (field: String, change: @Sendable (inout ClientConfiguration) -> Void)
  typealias ServerCase = (field: String, change: @Sendable (inout ServerConfiguration) -> Void)

  /// A path of a byte more than a socket's address has room for, besides the NUL at its end.
  private static let tooLong = String(repeating: "a", count: SocketAddress.longestUnixPath + 1)

  static let clientCases: [ClientCase] = [
    ("servers", { $0.servers = [] }),
    ("servers[0]", { $0.servers = [ServerEntry(.host("", port: 1))] }),
    ("servers[0]", { $0.servers = [ServerEntry(.host("a\0b", port: 1))] }),
    ("servers[1]", { $0.servers.append(ServerEntry(.host("host", port: 0))) }),
    ("servers[1]", { $0.servers.append(ServerEntry(.unix(path: ""))) }),
    ("servers[1]", { $0.servers.append(ServerEntry(.unix(path: "/a\0"))) }),
    ("servers[1]", { $0.servers.append(ServerEntry(.unix(path: tooLong))) }),
    ("servers[0].weight", { $0.servers[0].weight = 0 }),
    ("servers[0].weight", { $0.servers[0].weight = 1_000_001 }),
    ("environments[a]", { $0.environments = ["a": [], "b": $0.servers] }),
    ("environments[b][0]", { $0.environments = ["b": [ServerEntry(.unix(path: ""))]] }),
    ("timeouts.request", { $0.timeouts.request = .zero }),
    ("timeouts.request", { $0.timeouts.request = .seconds(-1) }),
    ("timeouts.lingering", { $0.timeouts.lingering = .zero }),
    ("reconnect.coolDown", { $0.reconnect.coolDown = .zero }),
    ("reconnect.longestCoolDown", { $0.reconnect.longestCoolDown = .seconds(1) }),
    ("reconnect.preferredRetry", { $0.reconnect.preferredRetry = .zero }),
    (
      "reconnect.errorRatio.minimumRequests",
      { $0.reconnect.errorRatio = .init(minimumRequests: 0, ratio: 1) }
    ),
    (
      "reconnect.errorRatio.ratio",
      { $0.reconnect.errorRatio = .init(minimumRequests: 1, ratio: 0) }
    ),
    (
      "reconnect.errorRatio.ratio",
      { $0.reconnect.errorRatio = .init(minimumRequests: 1, ratio: .nan) }
    ),
    (
      "reconnect.errorRatio.window",
      { $0.reconnect.errorRatio = .init(minimumRequests: 9, ratio: 1, window: 8) }
    ),
    ("timeouts.connect", { $0.timeouts.connect = .zero }),
    ("timeouts.frame", { $0.timeouts.frame = .seconds(-1) }),
    ("heartbeat.interval", { $0.heartbeat.interval = .seconds(-1) }),
    ("heartbeat.interval", { $0.heartbeat.interval = .milliseconds(199) }),
    ("heartbeat.timeout", { $0.heartbeat.timeout = .milliseconds(99) }),
    ("reconnect.afterRefused", { $0.reconnect.afterRefused = .zero }),
    ("heartbeat.missedDeadlines", { $0.heartbeat.missedDeadlines = -1 }),
    ("adaptHeartbeat.shortest", { $0.adaptiveHeartbeat = .init(shortest: .seconds(31)) }),
    ("adaptHeartbeat.shortest", { $0.adaptiveHeartbeat = .init(shortest: .milliseconds(9)) }),
    ("adaptHeartbeat.step", { $0.adaptiveHeartbeat = .init(step: .zero) }),
    ("adaptHeartbeat.successes", { $0.adaptiveHeartbeat = .init(successes: 0) }),
    ("adaptHeartbeat.backOff", { $0.adaptiveHeartbeat = .init(backOff: .zero) }),
    ("adaptHeartbeat.failures", { $0.adaptiveHeartbeat = .init(failures: 0) }),
    ("reconnect.cap", { $0.reconnect.cap = .milliseconds(1) }),
    ("reconnect.afterClose", { $0.reconnect.afterClose = .seconds(-1) }),
    ("reconnect.afterLostHeartbeat", { $0.reconnect.afterLostHeartbeat = .seconds(-1) }),
    ("limits.maxWaiting", { $0.limits.maxWaiting = -1 }),
    ("limits.maxWaitingBytes", { $0.limits.maxWaitingBytes = -1 }),
    ("retry.maxRetries", { $0.retry.maxRetries = -1 }),
    ("retry.maxRetries", { $0.retry.maxRetries = 101 }),
    ("retry.baseDelay", { $0.retry.baseDelay = .zero }),
    ("retry.maxDelay", { $0.retry.maxDelay = .milliseconds(99) }),
    ("retry.budget", { $0.retry.budget = -1 }),
    ("retry.budget", { $0.retry.budget = .infinity }),
    ("retry.budgetPerSuccess", { $0.retry.budgetPerSuccess = .nan }),
    ("limits.waterMarks.high", { $0.limits.waterMarks = WaterMarks(high: 0, low: 0) }),
    ("limits.waterMarks.low", { $0.limits.waterMarks.low = -1 }),
    ("limits.waterMarks.low", { $0.limits.waterMarks.low = $0.limits.waterMarks.high }),
    ("limits.waterMarks.large", { $0.limits.waterMarks.large = 0 }),
    ("limits.maxUnreadOutput", { $0.limits.maxUnreadOutput = $0.limits.waterMarks.high - 1 }),
    ("limits.maxInFlight", { $0.limits.maxInFlight = 0 }),
    ("limits.maxBody", { $0.limits.maxBody = 0 }),
    ("limits.maxBody", { $0.limits.maxBody = 1 << 31 + 1 }),
    ("name", { $0.name = "a\0b" }),
    ("name", { $0.name = String(repeating: "x", count: 1_025) }),
  ]

  static let serverCases: [ServerCase] = [
    ("listen", { $0.listen = [] }),
    ("listen[0]", { $0.listen = [.host("", port: 1)] }),
    ("listen[0]", { $0.listen = [.host("a\0b", port: 1)] }),
    ("listen[1]", { $0.listen.append(.unix(path: "")) }),
    ("listen[1]", { $0.listen.append(.unix(path: "/a\0b")) }),
    ("listen[1]", { $0.listen.append(.unix(path: tooLong)) }),
    ("loops", { $0.loops = 0 }),
    ("limits.maxConnections", { $0.limits.maxConnections = 0 }),
    ("limits.maxInFlight", { $0.limits.maxInFlight = 0 }),
    ("limits.maxBody", { $0.limits.maxBody = 0 }),
    ("limits.maxBody", { $0.limits.maxBody = 1 << 31 + 1 }),
    ("limits.maxRequestBytes", { $0.limits.maxRequestBytes = $0.limits.maxBody - 1 }),
    ("limits.maxUnreadOutput", { $0.limits.maxUnreadOutput = $0.limits.maxBody - 1 }),
    ("limits.maxUnreadOutput", { $0.limits.waterMarks.high = $0.limits.maxUnreadOutput + 1 }),
    ("limits.waterMarks.high", { $0.limits.waterMarks = WaterMarks(high: 0, low: 0) }),
    ("limits.waterMarks.low", { $0.limits.waterMarks.low = -1 }),
    ("limits.waterMarks.low", { $0.limits.waterMarks.low = $0.limits.waterMarks.high }),
    ("timeouts.firstFrame", { $0.timeouts.firstFrame = .zero }),
    ("timeouts.frame", { $0.timeouts.frame = .seconds(-1) }),
    ("timeouts.message", { $0.timeouts.message = .zero }),
    ("identity.timeout", { $0.identity.timeout = .seconds(-1) }),
    ("timeouts.request", { $0.timeouts.request = .zero }),
    ("drain.spread", { $0.drain.spread = .seconds(-1) }),
    ("drain.retryAfter", { $0.drain.retryAfter = .seconds(-1) }),
    (
      "drain.alternatives",
      { $0.drain.alternatives = .init(repeating: .host("a", port: 1), count: 9) }
    ),
    ("drain.alternatives[0]", { $0.drain.alternatives = [.unix(path: "/a")] }),
    ("drain.alternatives[0]", { $0.drain.alternatives = [.host("a:b]", port: 1)] }),
    ("heartbeat.interval", { $0.heartbeat.interval = .zero }),
    ("heartbeat.timeout", { $0.heartbeat.timeout = .zero }),
    ("name", { $0.name = "\0" }),
    ("name", { $0.name = String(repeating: "x", count: 1_025) }),
  ]

  @Test func `an alternative in a goaway is parsed, or is invalid`() {
    let good: [(String, Endpoint)] = [
      ("a.example:80", .host("a.example", port: 80)),
      ("10.0.0.1:65535", .host("10.0.0.1", port: 65_535)),
      ("[::1]:9000", .host("::1", port: 9000)),
      ("[fe80::1%eth0]:1", .host("fe80::1%eth0", port: 1)),
    ]
    for (text, endpoint) in good {
      #expect(Endpoint(alternative: text) == endpoint)
      #expect(endpoint.alternativeText == text)
    }
    let bad = [
      "", ":", "a", "a:", ":80", "a:0", "a:65536", "a:-1", "a:+1", "a: 1", "a:8x", "::1:80",
      "[::1]",
      "[::1]80", "[a]:80", "[]:80", "a b:80", "a\u{1}:80", "[::1:80", "::1]:80", "a:b:80",
      "[[::1]]:80",
      String(repeating: "x", count: 254) + ":80",
    ]
    for text in bad { #expect(Endpoint(alternative: text) == nil, "\(text)") }
    #expect(Endpoint.unix(path: "/a").alternativeText == nil)
    #expect(Endpoint.host("a", port: 0).alternativeText == nil)
  }

  @Test func `the longest path of a socket is accepted`() throws {
    let path = String(Self.tooLong.dropLast())
    try ClientConfiguration(servers: [.unix(path: path)]).validate()
    try ServerConfiguration(listen: [.unix(path: path)]).validate()
  }

  @Test func `a heartbeat is made from a budget, or refused with the numbers`() throws {
    let heartbeat = try Heartbeat(findingDeadPeersWithin: .seconds(40), wakingAtMost: 100)
    #expect(heartbeat == Heartbeat(interval: .seconds(36), timeout: .seconds(4)))
    try heartbeat.validate(field: "heartbeat")
    let error = #expect(throws: LongLinkError.self) {
      try Heartbeat(findingDeadPeersWithin: .seconds(60), wakingAtMost: 60)
    }
    #expect(error?.code == .invalidConfiguration)
    #expect(error?.detail.contains("within 61000 ms") == true)
    #expect(error?.detail.contains("needs at least 62") == true)
    for (bound, wakeUps) in [(Duration.zero, 10), (.seconds(-1), 10), (.seconds(60), -1)] {
      #expect(throws: LongLinkError.self) {
        try Heartbeat(findingDeadPeersWithin: bound, wakingAtMost: wakeUps)
      }
    }
    let longest = try Heartbeat(findingDeadPeersWithin: .seconds(Int64.max), wakingAtMost: .max)
    try longest.validate(field: "heartbeat")
  }

  @Test(arguments: clientCases.indices)
  func `a client's field is checked`(_ index: Int) throws {
    let (field, change) = Self.clientCases[index]
    var configuration = ClientConfiguration(servers: [.host("host", port: 1)])
    try configuration.validate()
    change(&configuration)
    let error = #expect(throws: LongLinkError.self) { try LongLinkClient(configuration) }
    #expect(error?.code == .invalidConfiguration)
    #expect(error?.field == field)
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
    #expect(error?.field == field)
    #expect(error?.detail.isEmpty == false)
  }
}
