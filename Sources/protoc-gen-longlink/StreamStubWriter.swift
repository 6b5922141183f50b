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
    let writer = "LongLink::TypedItemWriter<\(input)>"
    source.add("")
    source.document(
      method.descriptor.protoSourceComments(), else: clientSummary(method))
    switch method.kind {
    case .unary, .serverStreaming:
      source.add(
        """
        \(access)func \(method.declared)(
          _ request: \(input), \(options)
        ) -> LongLink::TypedItemStream<\(output)> {
          sender.stream(\(value), request, options: options)
        }
        """)
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
            LongLink::TypedItems<\(output)>, \(writer)
          ) async throws -> ()
        ) async throws {
          try await sender.exchange(\(value), options: options, work)
        }
        """)
    }
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
    let writer = "writer: LongLinkServer::TypedItemWriter<\(output)>"
    let context = "context: LongLinkServer::InboundRequest"
    let items = "_ items: LongLinkServer::TypedItems<\(input)>"
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
        \(value), on: placement, itemTimeout: itemTimeout, requires: rule
      ) { \(parameters) in
        try await service.\(method.name)(\(arguments))
      }
      """)
  }
}
#endif
