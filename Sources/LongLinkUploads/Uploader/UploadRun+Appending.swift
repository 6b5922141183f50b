// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
@_spi(Loop) internal import LongLinkTransport
internal import LongLinkUploadMessages

extension UploadRun {
  /// How long an item of the stream may wait for credit.
  private static let itemTimeout = Duration.seconds(120)
  private static let largestItem = FilePieces.pieceSize

  /// Whether there are bytes that the server does not have.
  func hasMore() async throws(Retry) -> Bool {
    guard let source else { return false }
    let start = loop.driver.now
    defer { retries.wasIdle(for: loop.driver.now - start) }
    do throws(UploadError) {
      return try await source.hasBytes(at: offset)
    } catch {
      throw .final(error)
    }
  }

  /// Sends one append: the bytes from the server's offset on, as many as one append may carry.
  func append() async throws(Retry) {
    guard let id else { return }
    let begin = offset
    let message = AppendRequest(id: id, generation: generation, offset: begin)
    let options = StreamOptions(itemTimeout: Self.itemTimeout, waitsForConnection: false)
    let answer: AppendResponse
    do {
      let bytes = try await client.sendItems(
        UploadMethods.append, message, options: options
      ) { writer in
        try await self.write(to: writer, from: begin)
        writer.finish()
        guard await self.hasEnded(writer) else { throw Unanswered() }
      }
      answer = try AppendResponse(copying: bytes)
    } catch let error as LongLinkError {
      throw Retry(error)
    } catch let error as UploadError {
      throw .final(error)
    } catch is Unanswered {
      throw .link(nil)
    } catch is CancellationError {
      throw .final(UploadError(.cancelled))
    } catch {
      throw .final(UploadError(.damaged, detail: "\(error)"))
    }
    guard answer.offset >= begin, answer.offset <= source?.position ?? 0 else {
      throw .final(UploadError(.damaged, detail: "the server has another number of bytes"))
    }
    do throws(UploadError) {
      try move(to: answer.offset)
    } catch {
      throw .final(error)
    }
    // An answer without new bytes is a failure like any other.
    if answer.offset == begin || retries.isExhausted(at: loop.driver.now) { throw .link(nil) }
  }

  /// Waits for the answer to an append whose bytes were all sent; false if that takes longer than
  /// `answerTimeout`.
  private func hasEnded(_ writer: ItemWriter<[UInt8]>) async -> Bool {
    await withTaskGroup(of: Bool.self) { group in
      group.addTask {
        await writer.waitForEnd()
        return true
      }
      group.addTask { [loop, options] in
        (try? await loop.sleep(for: options.answerTimeout)) == nil
      }
      defer { group.cancelAll() }
      return await group.next() ?? true
    }
  }

  private func write(to writer: ItemWriter<[UInt8]>, from begin: UInt64) async throws {
    guard let source else { return }
    // At least one byte, or the upload would never end with a server whose limit is 0.
    var left = max(1, min(mostAppend, throttle?.second ?? .max))
    // Proxies limit the body of a POST, and over a short link each append is a POST.
    if case .short = client.state { left = min(left, UploadRun.mostShortAppend) }
    var position = begin
    var start = loop.driver.now
    while left > 0, try await source.hasBytes(at: position) {
      let limit = min(UploadRun.largestItem, throttle?.piece ?? .max, Int(clamping: left))
      let piece = source.take(upTo: limit)
      if let delay = throttle?.delay(of: piece.count, at: loop.driver.now), delay > .zero {
        try await loop.sleep(for: delay)
      }
      retries.wasIdle(for: loop.driver.now - start)
      try await writer.write(piece)
      start = loop.driver.now
      position += UInt64(piece.count)
      left -= UInt64(piece.count)
      let sent = position
      feed.value.change { $0.sent(piece.count, upTo: sent) }
    }
  }
}

/// The server has not answered in time, after all bytes of an append were sent.
private struct Unanswered: Error {}
