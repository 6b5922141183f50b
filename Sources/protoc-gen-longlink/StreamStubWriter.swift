// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
import SwiftProtobuf
import SwiftProtobufPluginLibrary

// What is generated for a method with a stream: each function takes or returns a sequence or a
// writer of messages in place of a message.
extension FileWriter {
  // MARK: The client

  func writeStreamCall(
    _ method: Service.Method, _ service: Service, to source: inout SourceText
  ) {
    let input = schema.type(method.descriptor.inputType)
    let output = schema.type(method.descriptor.outputType)
    let value = schema.method(method, of: service)
    let options = "options: LongLink::StreamOptions = LongLink::StreamOptions()"
    let writer = "LongLink::ItemWriter<\(input)>"
    source.add("")
    source.document(
      method.descriptor.protoSourceComments(), else: clientSummary(method))
    switch method.kind {
    case .unary, .serverStreaming:
      source.add(
        """
        \(access)func \(method.declared)(
          _ request: \(input), \(options)
        ) -> LongLink::ItemStream<\(output)> {
          sender.stream(\(value), request, options: options)
        }
        """)
      writeResumption(method, input, output, value, to: &source)
      writeReaders(method, input, output, value, to: &source)
    case .clientStreaming:
      source.add(
        """
        \(access)nonisolated(nonsending) func \(method.declared)(
          \(options),
          _ work: nonisolated(nonsending) (\(writer)) async throws -> ()
        ) async throws -> \(output) {
          try await sender.sendItems(\(value), options: options, work)
        }
        """)
    case .bidirectional:
      source.add(
        """
        \(access)nonisolated(nonsending) func \(method.declared)(
          \(options),
          _ work: nonisolated(nonsending) (
            LongLink::Items<\(output)>, \(writer)
          ) async throws -> ()
        ) async throws {
          try await sender.exchange(\(value), options: options, work)
        }
        """)
    }
  }

  /// The sequence that opens the stream again.
  private func writeResumption(
    _ method: Service.Method, _ input: String, _ output: String, _ value: String,
    to source: inout SourceText
  ) {
    source.add(
      """

      /// Like the sequence, but opens the stream again when it is cut off, with the request that
      /// `resuming` makes of the last item that was taken; nil at first. Other errors end it,
      /// unless `retryingWhen` returns true.
      \(access)func \(method.declared)(
        options: LongLink::StreamOptions = LongLink::StreamOptions(),
        resuming: @escaping @Sendable (\(output)?) -> \(input),
        retryingWhen: @escaping @Sendable (LongLink::LongLinkError) -> Swift.Bool = { _ in false }
      ) -> LongLink::ResumingStream<\(output)> {
        sender.stream(
          \(value), options: options, resuming: resuming,
          retryingWhen: retryingWhen)
      }
      """)
  }

  /// The forms without async of a method whose response has items.
  private func writeReaders(
    _ method: Service.Method, _ input: String, _ output: String, _ value: String,
    to source: inout SourceText
  ) {
    let parameters =
      "_ request: \(input), options: LongLink::StreamOptions = LongLink::StreamOptions()"
    let next = "@escaping @Sendable () -> ()"
    for (summary, item) in [
      ("calls `onItem` with each item and then `completion`, on `executor`", output),
      (
        "each further item waits until `onItem` has called its second argument, once",
        "\(output), _ next: \(next)"
      ),
    ] {
      source.add(
        """

        /// Like the sequence, but \(summary).
        @discardableResult
        \(access)func \(method.declared)(
          \(parameters),
          on executor: LongLink::CallbackExecutor,
          onItem: @escaping @Sendable (\(item)) -> (),
          completion: @escaping @Sendable (Swift.Result<(), LongLink::LongLinkError>) -> ()
        ) -> LongLink::RequestHandle {
          sender.stream(
            \(value), request, options: options, on: executor, onItem: onItem,
            completion: completion)
        }
        """)
    }
    source.add(
      """

      /// Like the sequence, but blocks the calling thread, on which it calls `onItem`; do not call
      /// it in a task.
      \(access)func \(method.name)Blocking(
        \(parameters),
        onItem: (\(output)) throws -> ()
      ) throws {
        try sender.streamBlocking(\(value), request, options: options, onItem: onItem)
      }
      """)
  }

  private func clientSummary(_ method: Service.Method) -> String {
    let name = method.descriptor.name
    return switch method.kind {
    case .unary, .serverStreaming:
      "Returns the items of the response; the request `\(name)` is sent when they are iterated."
    case .clientStreaming:
      "Sends a request `\(name)` with the items that `work` writes, and returns its response."
    case .bidirectional:
      "Sends a request `\(name)`; `work` writes its items and reads those of the response."
    }
  }

  // MARK: The server

  /// The function of a handler, without its documentation.
  func writeStreamRequirement(_ method: Service.Method, to source: inout SourceText) {
    let input = schema.type(method.descriptor.inputType)
    let output = schema.type(method.descriptor.outputType)
    let writer = "writer: LongLinkServer::ItemWriter<\(output)>"
    let context = "context: LongLinkServer::InboundRequest"
    let items = "_ items: LongLinkServer::Items<\(input)>"
    let lines =
      switch method.kind {
      case .unary, .serverStreaming:
        "  _ request: \(input), \(writer),\n  \(context)\n) async throws"
      case .clientStreaming: "  \(items), \(context)\n) async throws -> \(output)"
      case .bidirectional: "  \(items),\n  \(writer),\n  \(context)\n) async throws"
      }
    source.add("func \(method.declared)(\n\(lines)")
  }

  func writeStreamRoute(
    _ method: Service.Method, _ service: Service, to source: inout SourceText
  ) {
    let value = schema.method(method, of: service)
    let (parameters, arguments) =
      switch method.kind {
      case .unary, .serverStreaming:
        ("request, context, writer", "request, writer: writer, context: context")
      case .clientStreaming: ("context, items", "items, context: context")
      case .bidirectional: ("context, items, writer", "items, writer: writer, context: context")
      }
    source.add(
      """
      routeStream(
        \(value), on: placement, itemTimeout: itemTimeout,
        requires: rule, fileID: fileID, line: line
      ) { \(parameters) in
        try await service.\(method.name)(\(arguments))
      }
      """)
  }

  // MARK: The simulated server

  /// What a simulated server has received of the items of a method's requests.
  func writeReceivedItems(
    _ method: Service.Method, _ type: String, to source: inout SourceText
  ) {
    let item = schema.type(method.descriptor.inputType)
    let name = method.descriptor.name
    source.add(
      """

      /// The items of each request `\(name)` so far; throws if one cannot be decoded.
      \(access)func \(method.name)Items() throws(LongLinkTesting::BodyError) -> [[\(item)]] {
        try server.items(of: \(type), as: \(item).self)
      }

      /// Waits until `condition` holds for `count` requests `\(name)`, by default that their items
      /// have ended, and returns the items of the last of these.
      \(access)nonisolated(nonsending) func waitFor\(method.upperName)(
        count: Swift.Int = 1,
        until condition: @escaping @Sendable (LongLinkTesting::ReceivedStream) -> Swift.Bool = {
          $0.hasEnded
        }
      ) async throws -> [\(item)] {
        try await server.waitForItems(
          of: \(type), as: \(item).self, count: count, until: condition)
      }
      """)
  }
}
#endif
