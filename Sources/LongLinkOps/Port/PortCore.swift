// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkServer
internal import LongLinkTransport
internal import Logging
internal import NIOCore
internal import NIOHTTP1

/// What the port knows and does, on its thread. Nothing here waits for anything else.
final class PortCore {
  let server: LongLinkServer
  let watch: ServerWatch
  let thread: PortThread
  let configuration: OperationsConfiguration
  let history = History()
  let started = NIODeadline.now()
  var places = PortPlaces()
  private let hosts: HostRule
  private var tokens: TokenGuard?
  private var couriers: [LoopCourier] = []
  private var sampling: RepeatedTask?
  private var reports: ManagerReports?
  private let log: PeerLog

  /// The requests that wait for loops.
  var waits: [LoopWait] = []
  private(set) var isStopped = false

  /// How often the values for the charts are taken.
  private static let sampleTime = TimeAmount.seconds(5)

  init(
    _ server: LongLinkServer, _ watch: ServerWatch, _ configuration: OperationsConfiguration,
    on thread: PortThread
  ) {
    self.server = server
    self.watch = watch
    self.thread = thread
    self.configuration = configuration
    hosts = HostRule(configuration)
    log = PeerLog(configuration.logger)
    tokens = configuration.token.map(TokenGuard.init)
  }

  /// Begins to take values for the charts, and to tell the service manager about the server, unless
  /// the port was stopped meanwhile.
  func start() {
    guard !isStopped else { return }
    reports = ManagerReports(self)
    let core = NIOLoopBound(self, eventLoop: thread.loop)
    sampling = thread.loop.scheduleRepeatedTask(initialDelay: .zero, delay: Self.sampleTime) { _ in
      core.value.sample {}
    }
  }

  /// Ends all connections.
  func stop() {
    isStopped = true
    sampling?.cancel()
    reports?.stop()
    reports = nil
    for wait in waits { wait.timer?.cancel() }
    waits = []
    for handler in places.all { handler.close() }
  }

  /// The couriers of the server's loops; none before the server has started.
  var couriersNow: [LoopCourier] {
    let loops = server.watchedLoops
    // After a failed start, the server may have other loops.
    if !loops.elementsEqual(couriers, by: { $0.loop === $1.loop.loop }) {
      couriers = loops.enumerated().map { LoopCourier($0.offset, $0.element, on: thread) }
    }
    return couriers
  }

  /// The name of a method, or its message type as text.
  func name(of type: MessageType, _ known: String? = nil) -> String {
    known ?? server.methodNames[type] ?? configuration.methods[type] ?? "\(type)"
  }

  // MARK: Requests

  /// What a client may see.
  enum Admission {
    case all
    /// Whether the server is live and ready, in a word: the token is missing.
    case health
    case refusal(PortAnswer)
  }

  /// Judges who sends a request. Call it once for each.
  func admission(of request: PortRequest) -> Admission {
    if let refusal = refusal(of: request) { return .refusal(refusal) }
    switch tokens?.judge(request.authorization, from: request.address?.group, at: .now()) {
    case .right, nil: return .all
    case .missing where request.isOfHealth: return .health
    case .missing: return .refusal(.unauthorized(request.form))
    case .wrong:
      noteWrongToken(of: request)
      return .refusal(.unauthorized(request.form))
    case .throttled(let seconds):
      var answer = PortAnswer.problem(
        .tooManyRequests, "too many wrong tokens came from this address", as: request.form)
      answer.headers.append(("Retry-After", "\(seconds)"))
      return .refusal(answer)
    }
  }

  private func noteWrongToken(of request: PortRequest) {
    let now = LinkInstant(nanoseconds: Int64(clamping: NIODeadline.now().uptimeNanoseconds))
    log.log(
      .warning, "A wrong token was shown on the operations port", of: request.address?.group,
      at: now
    ) {
      ["peer": "\(request.address.map(String.init(describing:)) ?? "unknown")"]
    }
  }

  /// Refuses what a web page of someone else may have made a browser send.
  private func refusal(of request: PortRequest) -> PortAnswer? {
    if !hosts.allows(request.host, at: request.local) {
      return .problem(
        .misdirectedRequest, "this port is not known by the name in Host: see names",
        as: request.form)
    }
    if request.method == .POST, request.hasOrigin {
      return .problem(.forbidden, "a web page cannot operate this server", as: request.form)
    }
    return nil
  }

  /// Answers a request that is admitted, now or within about a second.
  func answer(
    _ request: PortRequest, isTrusted: Bool, _ reply: @escaping (PortAnswer) -> Void
  ) {
    if request.method == .CONNECT {
      return reply(.problem(.notImplemented, "this port is no proxy", as: request.form))
    }
    switch request.path {
    case []: get(request, reply) { overview(request.form, reply) }
    case ["livez"]: get(request, reply) { liveness(isTrusted: isTrusted, reply) }
    case ["readyz"]: get(request, reply) { readiness(isTrusted: isTrusted, reply) }
    case ["metrics"]: get(request, reply) { metrics(reply) }
    case ["recording"]: recording(request, reply)
    case ["exchanges"]: get(request, reply) { exchanges(request.form, reply) }
    case ["connections"]:
      get(request, taking: ["after", "limit", "state"], reply) { connections(request, reply) }
    default:
      guard request.path.count > 1, request.path[0] == "connections",
        let id = PortRequest.number(request.path[1])
      else { return reply(.notFound(request)) }
      switch request.path.dropFirst(2) {
      case []: get(request, reply) { connection(id, request.form, reply) }
      case ["drain"]: post(request, reply) { end(id, reply) { $0.drain(id) } }
      case ["close"]: post(request, reply) { end(id, reply) { $0.close(id) } }
      default: reply(.notFound(request))
      }
    }
  }

  /// Calls `answer` for a request of a page that takes `parameters`.
  private func get(
    _ request: PortRequest, taking parameters: [String] = [], _ reply: (PortAnswer) -> Void,
    _ answer: () -> Void
  ) {
    guard request.method == .GET || request.method == .HEAD else {
      return reply(.notAllowed(request, "GET, HEAD"))
    }
    if let wrong = request.wrongParameter(besides: parameters) {
      return reply(.problem(.badRequest, wrong, as: request.form))
    }
    answer()
  }

  private func post(
    _ request: PortRequest, _ reply: (PortAnswer) -> Void, _ answer: () -> Void
  ) {
    guard request.method == .POST else { return reply(.notAllowed(request, "POST")) }
    if let wrong = request.wrongParameter(besides: []) {
      return reply(.problem(.badRequest, wrong, as: request.form))
    }
    answer()
  }
}

extension PortRequest {
  /// Whether the request asks what a balancer or a supervisor may know.
  fileprivate var isOfHealth: Bool { path == ["livez"] || path == ["readyz"] }
}

extension PortAnswer {
  fileprivate static func unauthorized(_ form: PortRequest.Form) -> PortAnswer {
    var answer = problem(.unauthorized, "show the token of this port", as: form)
    answer.headers.append(("WWW-Authenticate", "Bearer realm=\"longlink\""))
    answer.headers.append(("WWW-Authenticate", "Basic realm=\"longlink\""))
    return answer
  }

  static func notFound(_ request: PortRequest) -> PortAnswer {
    problem(.notFound, "there is no such page", as: request.form)
  }

  static func notAllowed(_ request: PortRequest, _ methods: String) -> PortAnswer {
    var answer = problem(.methodNotAllowed, "this page takes \(methods)", as: request.form)
    answer.headers.append(("Allow", methods))
    return answer
  }
}
#endif
