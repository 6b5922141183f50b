// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

extension LongLinkServer {
  /// Sets the handler of a method whose response has items. The handler gets the decoded request.
  ///
  /// A request whose body does not decode is refused with 400, without calling the handler. If a
  /// wait for the client to take an item lasts longer than `itemTimeout` (default: no limit),
  /// writing throws `deadlineExceeded`; thrown on, that responds with 408. The handler runs in a
  /// task, which is cancelled when the client cancels, the connection ends, or the deadline passes.
  /// A request that `rule` does not allow is refused with 403. Call this before `start`; it traps
  /// afterwards, and if the message type of the method has a handler already.
  public func routeStream<Request: BodyDecodable, Item: BodyEncodable>(
    _ method: RPCMethod<Request, Streamed<Item>>,
    on placement: HandlerPlacement = .connectionLoop, itemTimeout: Duration? = nil,
    requires rule: AccessRule? = nil, fileID: StaticString = #fileID, line: UInt = #line,
    _ handler:
      @escaping @Sendable (Request, InboundRequest, ItemWriter<Item>) async throws -> Void
  ) {
    setRoute(
      method.type, named: method.fullName.text, requires: rule, at: SettingPlace(fileID, line),
      .stream(StreamRoute(method, on: placement, itemTimeout: itemTimeout, handler)))
  }

  /// Sets the handler of a method whose request has items. The handler reads them decoded.
  ///
  /// In place of an item that does not decode, reading throws `decodingFailed`; thrown on, that
  /// responds with 400. If a wait for an item lasts longer than `itemTimeout` (default: no limit),
  /// reading throws `deadlineExceeded`; thrown on, that responds with 408. The handler runs in a
  /// task, which is cancelled when the client cancels, the connection ends, or the deadline passes.
  /// A request that `rule` does not allow is refused with 403. Call this before `start`; it traps
  /// afterwards, and if the message type of the method has a handler already.
  public func routeStream<Item: BodyDecodable, Reply: BodyEncodable>(
    _ method: RPCMethod<Streamed<Item>, Reply>,
    on placement: HandlerPlacement = .connectionLoop, itemTimeout: Duration? = nil,
    requires rule: AccessRule? = nil, fileID: StaticString = #fileID, line: UInt = #line,
    _ handler: @escaping @Sendable (InboundRequest, Items<Item>) async throws -> Reply
  ) {
    setRoute(
      method.type, named: method.fullName.text, requires: rule, at: SettingPlace(fileID, line),
      .stream(StreamRoute(method, on: placement, itemTimeout: itemTimeout, handler)))
  }

  /// Sets the handler of a method with items in both directions. The handler reads them decoded.
  ///
  /// In place of an item that does not decode, reading throws `decodingFailed`; thrown on, that
  /// responds with 400, after the items that were written. If a wait for an item, or for the client
  /// to take one, lasts longer than `itemTimeout` (default: no limit), reading or writing throws
  /// `deadlineExceeded`; thrown on, that responds with 408. The handler runs in a task, which is
  /// cancelled when the client cancels, the connection ends, or the deadline passes. A request that
  /// `rule` does not allow is refused with 403. Call this before `start`; it traps afterwards, and
  /// if the message type of the method has a handler already.
  public func routeStream<RequestItem: BodyDecodable, ResponseItem: BodyEncodable>(
    _ method: RPCMethod<Streamed<RequestItem>, Streamed<ResponseItem>>,
    on placement: HandlerPlacement = .connectionLoop, itemTimeout: Duration? = nil,
    requires rule: AccessRule? = nil, fileID: StaticString = #fileID, line: UInt = #line,
    _ handler:
      @escaping @Sendable (
        InboundRequest, Items<RequestItem>, ItemWriter<ResponseItem>
      ) async throws -> Void
  ) {
    setRoute(
      method.type, named: method.fullName.text, requires: rule, at: SettingPlace(fileID, line),
      .stream(StreamRoute(method, on: placement, itemTimeout: itemTimeout, handler)))
  }
}
