// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

extension ItemChannel {
  /// Why nothing can be written any more; nil if it can.
  var writeFailure: LongLinkError? {
    guard sendsItems else {
      return error(.unsupported, "this exchange carries no items of this side")
    }
    if let closed { return closed }
    switch isRequester ? outcome : nil {
    case .success:
      return error(.streamEnded, "the peer has responded before all items were sent")
    case .failure(let error): return error
    case nil: return endsItems ? error(.streamEnded, "the items were ended here") : nil
    }
  }

  /// Whether an item would go to the connection at once, and none waits there.
  package var canWriteNow: Bool { !isSending && waiting.isEmpty && link != nil }

  /// Writes an item if it need not wait for others.
  @inline(__always)
  package func write(_ item: borrowing RequestBody) -> Write {
    if outcome != nil || closed != nil || endsItems || !sendsItems, let writeFailure {
      return .failed(writeFailure)
    }
    guard let link, !isSending, waiting.isEmpty else { return .mustWait }
    return send(item, on: link)
  }

  private func send(_ item: borrowing RequestBody, on link: Link) -> Write {
    do throws(BodyError) {
      let count = try item.encodedByteCount
      guard link.accepts(bodyOf: count) else {
        return .failed(
          error(.tooLarge, "an item of \(count) bytes; the peer accepts at most \(link.maxBody)"))
      }
      let placement = try link.sendItem(serial, count: count, sharing: { item.bytes }) {
        (span) throws(BodyError) in
        try item.encode(into: &span)
      }
      switch placement {
      case .encoded:
        hasWritten = true
        return .done
      case .waiting:
        hasWritten = true
        isSending = true
        itemsTaken += 1
        return .taken
      case .ended where isRequester && outcome == nil:
        // The response has begun to arrive, or the link is lost, and the outcome follows. If that
        // is a refusal, the request and this item may be sent again.
        return .mustWait
      case .ended:
        return .failed(endedError)
      }
    } catch {
      return .failed(self.error(.encodingFailed, "\(error)"))
    }
  }

  /// Waits until the connection has sent an item that it took, with its number among them; returns
  /// the number of the wait.
  package func awaitSent(
    _ waiter: Waiter<Result<Void, LongLinkError>>, item: UInt64
  ) -> UInt64 {
    lastID += 1
    if item == itemLost {
      waiter(.failure(endedError))
    } else if isSending, item == itemsTaken {
      writer = (lastID, waiter)
      armForWriting()
    } else {
      waiter(.success(()))
    }
    return lastID
  }

  /// Why an item was not sent whose exchange has ended.
  var endedError: LongLinkError { writeFailure ?? error(.closed, "the exchange has ended") }

  /// Writes an item behind those that wait; returns the number of the wait.
  package func enqueue(
    _ item: RequestBody, _ waiter: Waiter<Result<Void, LongLinkError>>
  ) -> UInt64 {
    lastID += 1
    waiting.append(WaitingWrite(id: lastID, item: item, waiter: waiter))
    armForWriting()
    return lastID
  }

  /// Ends the wait of a task that was cancelled. An item that the connection has taken is still
  /// sent.
  package func cancelWrite(_ id: UInt64) {
    let cancelled = error(.cancelled, "")
    if let writer, writer.id == id {
      self.writer = nil
      writer.waiter(.failure(cancelled))
    }
    let wasNext = writer == nil && waiting.first?.id == id
    if let write = waiting.remove(where: { $0.id == id }) { write.waiter(.failure(cancelled)) }
    if writer == nil, waiting.isEmpty, onLate == nil { writeDeadline = .distantFuture }
    // The next one's time begins now.
    if wasNext, !waiting.isEmpty {
      writeDeadline = .distantFuture
      armForWriting()
    }
  }

  /// The connection has encoded the item that it took.
  func itemSent() {
    isSending = false
    writer?.waiter(.success(()))
    writer = nil
    writeDeadline = .distantFuture
    sendWaiting()
  }

  func sendWaiting() {
    guard let link else { return }
    while !isSending, let write = waiting.first {
      let placement = send(write.item, on: link)
      if case .mustWait = placement { break }
      _ = waiting.popFirst()
      // The next one has its own time.
      writeDeadline = .distantFuture
      switch placement {
      case .done: write.waiter(.success(()))
      case .failed(let error): write.waiter(.failure(error))
      case .taken, .mustWait: writer = (write.id, write.waiter)
      }
    }
    if !waiting.isEmpty || writer != nil { return armForWriting() }
    guard !isSending else { return }
    if endsItems, isRequester { link.endItems(serial) }
    if let onWritten {
      self.onWritten = nil
      onWritten()
    }
  }

  /// Ends this side's items, behind those that wait. A responder's have no end but the response.
  package func endItems() {
    guard sendsItems, !endsItems else { return }
    endsItems = true
    if isRequester, waiting.isEmpty { link?.endItems(serial) }
  }

  /// Waits for the end of the exchange; returns the number of the wait, nil if it has ended.
  package func awaitEnd(_ waiter: Waiter<Void>) -> UInt64? {
    if isRequester ? outcome != nil : closed != nil {
      waiter(())
      return nil
    }
    lastID += 1
    awaitsEnd.append((lastID, waiter))
    return lastID
  }

  /// Ends the wait of a task that was cancelled.
  package func cancelAwaitEnd(_ id: UInt64) {
    guard let index = awaitsEnd.firstIndex(where: { $0.id == id }) else { return }
    awaitsEnd.remove(at: index).waiter(())
  }

  /// Whether no item waits.
  var isFlushed: Bool { !isSending && waiting.isEmpty }

  /// Calls a function once no item waits, and the other one if the peer takes none in time.
  func whenWritten(_ function: @escaping () -> Void, orLate late: @escaping () -> Void) {
    onWritten = function
    onLate = late
    armForWriting()
  }

  /// Ends the responder's side.
  func close(_ detail: String) {
    ended(.failure(error(.closed, detail)))
  }
}

// MARK: - Time

extension ItemChannel: TimerHandler {
  func armForReading() {
    guard let itemTimeout, !isBeingAnswered else { return }
    readDeadline = loop.now + itemTimeout
    arm()
  }

  func armForWriting() {
    guard let itemTimeout, writeDeadline == .distantFuture, !isBeingAnswered else { return }
    writeDeadline = loop.now + itemTimeout
    arm()
  }

  private func arm() {
    guard timer == nil else { return }
    let deadline = min(readDeadline, writeDeadline)
    guard deadline != .distantFuture else { return }
    timer = loop.schedule(at: deadline, self, token: 0)
  }

  func disarm() {
    if let timer { loop.cancel(timer) }
    timer = nil
  }

  package func timerFired(token: UInt64) {
    timer = nil
    let now = loop.driver.now
    if readDeadline <= now, let reader {
      self.reader = nil
      readDeadline = .distantFuture
      let error = error(.deadlineExceeded, "no item came in time")
      reader.resume(.ended(.failure(error.with(itemsReceived: itemsRead))))
    }
    if writeDeadline <= now {
      writeDeadline = .distantFuture
      let error = error(.deadlineExceeded, "the peer took no item in time")
      writer?.waiter(.failure(error))
      writer = nil
      while let write = waiting.popFirst() { write.waiter(.failure(error)) }
      // Nobody else gives up an item that the connection has taken.
      if let onLate { onLate() }
    }
    arm()
  }
}
