// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkCalls
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport
internal import Synchronization

/// Carries out the calls of an endpoint over an `HTTPService`.
struct HTTPCarrier: CallCarrier {
  private let request: Result<HTTPRequest, any Error>
  private let type: MessageType
  private let core: ServiceCore
  let operation: String
  /// Identifies identical calls: their request, without metadata and idempotency key.
  let key: [UInt8]

  init(
    _ request: Result<HTTPRequest, any Error>, _ method: HTTPMethod, _ name: String,
    _ type: MessageType, _ core: ServiceCore
  ) {
    self.request = request
    self.type = type
    self.core = core
    let address = try? HTTPAddress((try? request.get().url) ?? "")
    operation = "\(method.rawValue) \(address?.safeText ?? PeerText(name).description)"
    key = HTTPCarrier.key(request, core)
  }

  private static func key(_ request: Result<HTTPRequest, any Error>, _ core: ServiceCore) -> [UInt8]
  {
    guard let request = try? request.get(), let body = request.body.bytes else {
      // A body that is read while it is sent equals no other.
      return Array("unique \(UniqueNumber.next())".utf8)
    }
    var text = "\(core.number)\n\(request.method.rawValue)\n\(request.url)\n"
    text += "\(request.maxRedirects) \(request.maxResponseBytes ?? 0) \(request.usesCache)\n"
    text += "\(request.authentication?.identity ?? "")\n"
    for field in request.fields.fields + request.secretFields.fields {
      text += "\(field.name.lowercased()):\(field.value)\n"
    }
    text += "\n\(request.body.contentType ?? "")\n"
    return Array(text.utf8) + body
  }

  func begin(
    _ options: RequestOptions, on loop: EventLoop,
    _ completion: @escaping @Sendable (Result<[UInt8], LongLinkError>) -> Void
  ) -> any CallExchange {
    let task = Task(executorPreference: loop) {
      let outcome: Result<[UInt8], LongLinkError>
      do throws(LongLinkError) {
        outcome = .success(try await run(options))
      } catch {
        outcome = .failure(error)
      }
      loop.execute { completion(outcome) }
    }
    return Exchange(task: task)
  }

  private func run(_ options: RequestOptions) async throws(LongLinkError) -> [UInt8] {
    var request: HTTPRequest
    do {
      request = try self.request.get()
    } catch {
      throw LongLinkError(
        .encodingFailed, doing: .exchange(operation, type: type),
        detail: "the request cannot be made: \(error)")
    }
    if let retry = options.retry { request.retry = retry }
    if options.ticket != nil { request.retry = .once }
    let exchange = HTTPExchange(request, on: core, type: type, timeout: options.timeout)
    // Sorted, so that identical calls have identical heads.
    for (name, value) in options.metadata.sorted(by: { $0.key < $1.key }) {
      exchange.extraFields[name] = value
    }
    if !options.idempotencyKey.isEmpty {
      exchange.extraFields["Idempotency-Key"] = "\"\(options.idempotencyKey.hexadecimal)\""
    }
    return try await exchange.reply().body
  }

  private struct Exchange: CallExchange {
    let task: Task<Void, Never>

    func cancel() { task.cancel() }
  }
}

extension HTTPBody {
  /// The bytes of a body in memory; nil for any other.
  fileprivate var bytes: [UInt8]? {
    switch source {
    case .none: []
    case .bytes(let bytes): bytes
    case .content, .multipart: nil
    }
  }
}

extension HTTPAuthentication {
  /// Identifies the user of the authentication.
  fileprivate var identity: String {
    switch kind {
    case .basic(let user, let password): HTTPCredentials.basic(user, password)
    case .bearer(let tokens): "bearer \(tokens.number)"
    case .challenged(let credentials): "credentials \(credentials.number)"
    }
  }
}
#endif
