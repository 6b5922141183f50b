// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
import SwiftProtobuf
import SwiftProtobufPluginLibrary

// MARK: - The client

extension FileWriter {
  func clientFile(_ folder: Folder) -> String {
    var source = header(
      importing: messageModules(besides: folder.module, services: true) + ["LongLink"],
      privately: conformances)
    for service in services {
      source.add("")
      source.document(
        service.descriptor.protoSourceComments(),
        else: "Asks the service `\(service.descriptor.fullName)`.")
      source.block("\(access)nonisolated struct \(service.client): Swift.Sendable {") {
        writeClientStart(to: &$0)
        for method in service.methods { writeCalls(method, service, to: &$0) }
      }
    }
    return source.text
  }

  private func writeClientStart(to source: inout SourceText) {
    source.add(
      """
      /// What sends the requests.
      \(access)let sender: any LongLink::RequestSender
      /// How requests are made, where neither a call nor its method says.
      \(access)var options: LongLink::RequestOptions

      /// Makes a client over one that may be shared with others, or over a connection with a peer.
      \(access)init(
        _ sender: any LongLink::RequestSender,
        options: LongLink::RequestOptions = LongLink::RequestOptions()
      ) {
        self.sender = sender
        self.options = options
      }
      """)
  }

  private func writeCalls(
    _ method: Service.Method, _ service: Service, to source: inout SourceText
  ) {
    let request = schema.type(method.descriptor.inputType)
    let reply = schema.type(method.descriptor.outputType)
    let value = schema.method(method, of: service)
    let called = "\(value).over(self.options), request, options: options"
    let result = "Swift.Result<\(reply), LongLink::LongLinkError>"
    let comments = method.descriptor.protoSourceComments()
    let fallback = "Sends a request `\(method.descriptor.name)` and waits for the answer."
    source.add("")
    source.document(comments, else: fallback)
    source.add(
      """
      \(access)nonisolated(nonsending) func \(method.declared)(
        _ request: \(request), options: LongLink::RequestOptions = LongLink::RequestOptions()
      ) async throws(LongLink::LongLinkError) -> \(reply) {
        try await sender.request(
          \(called))
      }

      /// As the asynchronous form; it returns a handle at once.
      \(access)func submit\(method.upperName)(
        _ request: \(request), options: LongLink::RequestOptions = LongLink::RequestOptions()
      ) -> LongLink::TypedRequestTask<\(reply)> {
        sender.submit(
          \(called))
      }

      /// As the asynchronous form; it calls `completion`, once, on the executor that is named.
      @discardableResult
      \(access)func \(method.declared)(
        _ request: \(request), options: LongLink::RequestOptions = LongLink::RequestOptions(),
        on executor: LongLink::CallbackExecutor,
        completion: @escaping @Sendable (\(result)) -> ()
      ) -> LongLink::RequestHandle {
        sender.request(
          \(called),
          on: executor, completion: completion)
      }

      /// As the asynchronous form; it blocks the calling thread, which must not be a task's.
      \(access)func \(method.name)Blocking(
        _ request: \(request), options: LongLink::RequestOptions = LongLink::RequestOptions()
      ) throws(LongLink::LongLinkError) -> \(reply) {
        try sender.requestBlocking(
          \(called))
      }
      """)
  }
}

// MARK: - The server

extension FileWriter {
  func serverFile(_ folder: Folder) -> String {
    var source = header(
      importing: messageModules(besides: folder.module, services: true) + ["LongLinkServer"],
      privately: conformances)
    for service in services {
      writeHandler(service, to: &source)
      writeRegistration(service, to: &source)
    }
    return source.text
  }

  private func writeHandler(_ service: Service, to source: inout SourceText) {
    source.add("")
    source.document(
      service.descriptor.protoSourceComments(),
      else: "Answers the requests of the service `\(service.descriptor.fullName)`.")
    source.block("\(access)nonisolated protocol \(service.handler): Swift.Sendable {") {
      for (index, method) in service.methods.enumerated() {
        let request = schema.type(method.descriptor.inputType)
        let reply = schema.type(method.descriptor.outputType)
        if index > 0 { $0.add("") }
        $0.document(
          method.descriptor.protoSourceComments(),
          else: "Answers a request `\(method.descriptor.name)`; throws `Rejection` to refuse it.")
        $0.add(
          """
          func \(method.declared)(
            _ request: \(request), context: LongLinkServer::InboundRequest
          ) async throws -> \(reply)
          """)
      }
    }
  }

  private func writeRegistration(_ service: Service, to source: inout SourceText) {
    source.add("")
    source.block("extension LongLinkServer::LongLinkServer {") {
      $0.add(
        "/// Has a service answer the requests of `\(service.descriptor.fullName)`. Before `start`."
      )
      $0.add("\(access)nonisolated func register(")
      // A label that is the parameter's name is not written twice.
      let parameter = service.label == "service" ? "service" : "\(service.label) service"
      $0.add("  \(parameter): some \(service.handler),")
      $0.add("  on placement: LongLinkServer::HandlerPlacement = .connectionLoop")
      $0.block(") {") {
        for method in service.methods {
          $0.add(
            """
            route(\(schema.method(method, of: service)), on: placement) { request, context in
              try await service.\(method.name)(request, context: context)
            }
            """)
        }
      }
    }
  }
}

// MARK: - The simulated server

extension FileWriter {
  func simulatedFile(_ folder: Folder) -> String {
    var source = header(
      importing: messageModules(besides: folder.module, services: true) + ["LongLinkTesting"],
      privately: conformances)
    for service in services {
      source.add("")
      source.add("/// A `\(service.descriptor.fullName)` that does what a test tells it to.")
      source.block("\(access)nonisolated struct \(service.simulated): Swift.Sendable {") {
        writeSimulatedStart(service, to: &$0)
        for method in service.methods { writeScript(method, service, to: &$0) }
      }
    }
    return source.text
  }

  private func writeSimulatedStart(_ service: Service, to source: inout SourceText) {
    source.add(
      """
      /// What listens, and is scripted further: its record, its faults, its pushes.
      \(access)let server: LongLinkTesting::SimulatedServer

      /// Scripts a server that was started.
      \(access)init(_ server: LongLinkTesting::SimulatedServer) {
        self.server = server
      }

      /// Starts a server, by default on the shared loop and on a free port of 127.0.0.1.
      \(access)static func start(
        on loop: LongLinkTesting::EventLoop = .shared,
        at address: LongLinkTesting::SocketAddress = .ipv4(127, 0, 0, 1, port: 0)
      ) async throws -> Self {
        Self(try await LongLinkTesting::SimulatedServer.start(on: loop, at: address))
      }

      /// Where clients reach it.
      \(access)var endpoint: LongLinkTesting::Endpoint { server.endpoint }

      /// Stops listening and closes all connections.
      \(access)func stop() async {
        await server.stop()
      }
      """)
  }

  private func writeScript(
    _ method: Service.Method, _ service: Service, to source: inout SourceText
  ) {
    let request = schema.type(method.descriptor.inputType)
    let reply = schema.type(method.descriptor.outputType)
    let type = schema.method(method, of: service) + ".type"
    let name = method.descriptor.name
    source.add(
      """

      /// Answers each `\(name)` with what the closure makes of it; a `Rejection` rejects it.
      \(access)func on\(method.upperName)(
        _ make: @escaping @Sendable (\(request)) throws -> \(reply)
      ) {
        server.on(\(type), make)
      }

      /// Says what to do about each `\(name)`, right or wrong, after a time where one is given.
      \(access)func on\(method.upperName)(
        _ action: LongLinkTesting::ServerAction, after delay: Swift.Duration? = nil
      ) {
        server.on(\(type), action, after: delay)
      }

      /// Says what to do about the first, second and so on `\(name)`; the last one repeats.
      \(access)func on\(method.upperName)(_ actions: [LongLinkTesting::ServerAction]) {
        server.on(\(type), actions)
      }

      /// The requests `\(name)` that came up to now; throws where one is not such a message.
      \(access)func \(method.name)Requests() throws(LongLinkTesting::BodyError) -> [\(request)] {
        try server.requests(of: \(type), as: \(request).self)
      }

      /// Waits until requests `\(name)` have come, and returns the last one that was waited for.
      \(access)nonisolated(nonsending) func waitFor\(method.upperName)(
        count: Swift.Int = 1
      ) async throws -> \(request) {
        try await server.waitForRequest(of: \(type), as: \(request).self, count: count)
      }
      """)
  }
}
#endif
