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
        else: "A client of the service `\(service.descriptor.fullName)`.")
      source.block("\(access)nonisolated struct \(service.client): Swift.Sendable {") {
        writeClientStart(service, to: &$0)
        for method in service.methods {
          if method.kind == .unary {
            writeCalls(method, service, to: &$0)
          } else {
            writeStreamCall(method, service, to: &$0)
          }
        }
      }
    }
    return source.text
  }

  private func writeClientStart(_ service: Service, to source: inout SourceText) {
    let note = service.hasStreams ? "\n/// Streams have options of their own." : ""
    source.add(
      """
      /// The client or connection that sends the requests.
      \(access)let sender: any LongLink::RequestSender
      /// The default options of requests; those of a request or its method take precedence.\(note)
      \(access)var options: LongLink::RequestOptions

      /// Makes a client that sends over a shared client, or over one connection.
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
    let fallback = "Sends a request `\(method.descriptor.name)` and returns its response."
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

      /// Like the asynchronous form, but returns a handle immediately.
      \(access)func submit\(method.upperName)(
        _ request: \(request), options: LongLink::RequestOptions = LongLink::RequestOptions()
      ) -> LongLink::RequestTask<\(reply)> {
        sender.submit(
          \(called))
      }

      /// Like the asynchronous form, but calls `completion` exactly once, on `executor`.
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

      /// Like the asynchronous form, but blocks the calling thread; do not call it in a task.
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
      else: "Handles the requests of the service `\(service.descriptor.fullName)`.")
    source.block("\(access)nonisolated protocol \(service.handler): Swift.Sendable {") {
      for (index, method) in service.methods.enumerated() {
        if index > 0 { $0.add("") }
        $0.document(
          method.descriptor.protoSourceComments(),
          else: "Handles a request `\(method.descriptor.name)`; throws a `Rejection` to reject it.")
        guard method.kind == .unary else {
          writeStreamRequirement(method, to: &$0)
          continue
        }
        let request = schema.type(method.descriptor.inputType)
        let reply = schema.type(method.descriptor.outputType)
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
        "/// Routes the requests of `\(service.descriptor.fullName)` to a service, before `start`."
      )
      $0.add(
        """
        /// It traps afterwards, and if the message type of a method has a handler already.
        ///
        /// Requests that `rule` does not allow are refused with 403. Default: the rule of
        /// `require(_:)`. For single methods, call `require(_:for:)` afterwards.
        """)
      if service.hasStreams {
        $0.add(
          """
          ///
          /// `itemTimeout` is the longest wait of a handler for an item, or until the client takes
          /// one. Default: no limit.
          """)
      }
      $0.add("\(access)nonisolated func register(")
      // A label that equals the parameter's name is written once.
      let parameter = service.label == "service" ? "service" : "\(service.label) service"
      $0.add("  \(parameter): some \(service.handler),")
      $0.add("  on placement: LongLinkServer::HandlerPlacement = .connectionLoop,")
      if service.hasStreams { $0.add("  itemTimeout: Swift.Duration? = nil,") }
      $0.add("  requires rule: LongLinkServer::AccessRule? = nil,")
      $0.add("  fileID: Swift.StaticString = #fileID, line: Swift.UInt = #line")
      $0.block(") {") {
        for method in service.methods {
          guard method.kind == .unary else {
            writeStreamRoute(method, service, to: &$0)
            continue
          }
          $0.add(
            """
            route(
              \(schema.method(method, of: service)), on: placement, requires: rule,
              fileID: fileID, line: line
            ) { request, context in
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
      source.add("/// A `\(service.descriptor.fullName)` scripted by a test.")
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
      /// The underlying server, with its record, its faults and its pushes.
      \(access)let server: LongLinkTesting::SimulatedServer

      /// Makes a script for a started server.
      \(access)init(_ server: LongLinkTesting::SimulatedServer) {
        self.server = server
      }

      /// Starts a server, by default on the shared loop and on a free port of 127.0.0.1.
      \(access)static func start(
        on loop: LongLinkTesting::EventLoop = .shared,
        at address: LongLinkTesting::SocketAddress = .ipv4(127, 0, 0, 1, port: 0),
        security: LongLinkTesting::ServerSecurity? = nil
      ) async throws -> Self {
        Self(
          try await LongLinkTesting::SimulatedServer.start(
            on: loop, at: address, security: security))
      }

      /// The endpoint that clients connect to.
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
    if method.kind == .unary {
      source.add(
        """

        /// Responds to each `\(name)` with the closure's result. The closure may throw `Rejection`.
        \(access)func on\(method.upperName)(
          _ make: @escaping @Sendable (\(request)) throws -> \(reply)
        ) {
          server.on(\(type), make)
        }
        """)
    }
    source.add(
      """

      /// Performs an action for each `\(name)`, after `delay` if there is one.
      \(access)func on\(method.upperName)(
        _ action: LongLinkTesting::ServerAction, after delay: Swift.Duration? = nil
      ) {
        server.on(\(type), action, after: delay)
      }

      /// Performs the first action for the first `\(name)`, and so on. The last action repeats.
      \(access)func on\(method.upperName)(_ actions: [LongLinkTesting::ServerAction]) {
        server.on(\(type), actions)
      }
      """)
    // A request in front of items has no body.
    guard !method.descriptor.clientStreaming else {
      return writeReceivedItems(method, type, to: &source)
    }
    source.add(
      """

      /// The received requests `\(name)`; throws if one cannot be decoded.
      \(access)func \(method.name)Requests() throws(LongLinkTesting::BodyError) -> [\(request)] {
        try server.requests(of: \(type), as: \(request).self)
      }

      /// Waits until `count` requests `\(name)` have arrived, and returns the last of these.
      \(access)nonisolated(nonsending) func waitFor\(method.upperName)(
        count: Swift.Int = 1
      ) async throws -> \(request) {
        try await server.waitForRequest(of: \(type), as: \(request).self, count: count)
      }
      """)
  }
}
#endif
