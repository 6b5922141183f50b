// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension ItemChannel {
  /// Whether an item has been passed to the connection.
  package var hasWritten: Bool { writing.hasBegun }

  /// The number of items that the connection could not encode at once, and took to send later.
  package var itemsTaken: UInt64 { writing.taken }

  /// Whether no item of this side waits to be sent.
  var isFlushed: Bool { writing.isFlushed }

  /// Why no item can be written any more; nil if items can be written.
  private var writeFailure: LongLinkError? {
    guard sendsItems else {
      return error(.unsupported, "this exchange carries no items of this side")
    }
    switch outcome {
    case .success:
      return error(.streamEnded, "the peer has responded before all items were sent")
    case .failure(let error): return error
    case nil: return writing.hasEnd ? error(.streamEnded, "the items were ended here") : nil
    }
  }

  /// Why an item was not sent whose stream has ended.
  var endedError: LongLinkError { writeFailure ?? error(.closed, "the exchange has ended") }

  /// Whether an item would go to the connection at once, because no other item waits.
  package var canWriteNow: Bool { writing.isFlushed && port != nil }

  /// Writes an item, unless it has to wait for earlier items.
  @inline(__always)
  package func write(_ item: borrowing RequestBody) -> Write {
    if outcome != nil || writing.hasEnd || !sendsItems, let writeFailure {
      return .failed(writeFailure)
    }
    guard let port, writing.isFlushed else { return .mustWait }
    return send(item, on: port)
  }

  private func send(_ item: borrowing RequestBody, on port: StreamPort) -> Write {
    do throws(BodyError) {
      let count = try item.encodedByteCount
      let most = port.link.connection.agreement.maxBody
      guard count <= most else {
        return .failed(
          error(.tooLarge, "an item of \(count) bytes; the peer accepts at most \(most)"))
      }
      let placement = try port.send(count: count, sharing: { item.bytes }) {
        (span) throws(BodyError) in
        try item.encode(into: &span)
      }
      switch placement {
      case .encoded:
        writing.passed(isTaken: false)
        return .done
      case .waiting:
        writing.passed(isTaken: true)
        port.noteWait()
        return .taken
      case .ended where isRequester && outcome == nil:
        // The response has begun to arrive, or the link is lost; the outcome will follow. If it is
        // a refusal, the request and this item may be sent again.
        return .mustWait
      case .ended:
        return .failed(endedError)
      }
    } catch {
      return .failed(self.error(.encodingFailed, "\(error)"))
    }
  }

  /// Waits until the connection has sent an item that it took; `item` is its number among these.
  /// Returns the number of the wait; nil if the item's fate is known already.
  package func awaitSent(
    _ waiter: Waiter<Result<Void, LongLinkError>>, item: UInt64
  ) -> UInt64? {
    switch writing.fate(of: item) {
    case .sent: waiter(.success(()))
    case .lost: waiter(.failure(endedError))
    case .waiting:
      let id = writing.wait(waiter)
      armForWriting()
      return id
    }
    return nil
  }

  /// Queues an item behind those that wait; returns the number of the wait.
  package func enqueue(
    _ item: RequestBody, _ waiter: Waiter<Result<Void, LongLinkError>>
  ) -> UInt64 {
    let id = writing.append(item, waiter)
    armForWriting()
    return id
  }

  /// Ends the wait of a task that was cancelled. An item that the connection has taken is still
  /// sent.
  package func cancelWrite(_ id: UInt64) {
    writing.cancel(id)?(.failure(error(.cancelled, "")))
    if writing.isAwaited { armForWriting() }
  }

  /// Handles that the connection has encoded the item that it took.
  func itemSent() {
    writing.sent()?(.success(()))
    sendWaiting()
  }

  func sendWaiting() {
    guard let port else { return }
    loop: while let item = writing.next {
      switch send(item, on: port) {
      case .mustWait: break loop
      case .taken: _ = writing.removeNext(isTaken: true)
      case .done: writing.removeNext(isTaken: false)?(.success(()))
      case .failed(let error): writing.removeNext(isTaken: false)?(.failure(error))
      }
    }
    if writing.isAwaited { return armForWriting() }
    guard !writing.isSending else { return }
    if writing.hasEnd, isRequester { port.endItems() }
    writing.takeOnWritten()?()
  }

  func failWriters(_ error: LongLinkError) {
    while let waiter = writing.removeWaiter() { waiter(.failure(error)) }
  }

  /// Ends this side's items, after those that wait. A responder's items end with its response.
  package func endItems() {
    guard sendsItems, writing.end() else { return }
    if isRequester, writing.isEmpty { port?.endItems() }
  }

  /// Calls `function` once no item waits, or `late` if the peer takes none within `itemTimeout`.
  func whenWritten(_ function: @escaping () -> Void, orLate late: @escaping () -> Void) {
    writing.whenWritten(function, orLate: late)
    armForWriting()
  }
}
