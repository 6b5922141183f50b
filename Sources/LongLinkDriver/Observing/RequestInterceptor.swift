// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
internal import LongLinkTransport

/// A request that a client is about to make, as the functions in its configuration's `interceptors`
/// see it and can change it.
public struct InterceptedRequest: Sendable {
  /// The message type.
  public let type: MessageType
  /// The name of the method, such as `Say`; empty for a request that was made with a message type
  /// alone.
  public let method: String
  /// The full name of the method's service, such as `chat.Chat`; empty for a method without one.
  public let service: String
  /// Whether the request is a stream, so that it carries items.
  public let isStream: Bool
  /// The options of the request: those of its call, else of its method, with the changes of earlier
  /// interceptors. The configuration applies where an option is not set.
  public var options: RequestOptions

  private(set) var ends: [End] = []

  typealias End = @Sendable (LongLinkError?, Duration) -> Void

  init(_ type: MessageType, _ method: MethodName, isStream: Bool, _ options: RequestOptions) {
    self.type = type
    self.method = method.name
    service = method.service
    self.isStream = isStream
    self.options = options
  }

  /// Has a function called once when the request has ended, with its error (nil for a success) and
  /// the time that it took.
  ///
  /// The function is called on the client's loop, which it must not block, before the caller
  /// continues. It may be called within the call that makes the request, so it must make requests
  /// of its own only in a task or a later job. The functions of several interceptors are called in
  /// reverse order. A stream ends with its response or its error; its reader may still have items
  /// to take.
  public mutating func whenEnded(
    _ function: @escaping @Sendable (LongLinkError?, Duration) -> Void
  ) {
    ends.append(function)
  }
}

/// A function that is called before each request of a client.
package typealias RequestInterceptor = @Sendable (inout InterceptedRequest) throws -> Void

extension LongLinkError {
  /// The error of a request that an interceptor has refused.
  init(refusing type: MessageType, _ error: any Error) {
    switch error {
    case let error as LongLinkError: self = error.with(delivery: .notSent)
    case is CancellationError:
      self.init(.cancelled, doing: .request(type), detail: "an interceptor was cancelled")
    default: self.init(.intercepted, doing: .request(type), detail: "\(PeerText("\(error)"))")
    }
  }
}
