// SPDX-License-Identifier: Apache-2.0

/// The functions that `XMLReader` and `JSONReader` have in common.
protocol FeedableReader: ~Copyable {
  associatedtype Output

  mutating func feed(_ bytes: some Sequence<UInt8>)
  mutating func finish()
  mutating func next() throws(ReaderError) -> Output?
}

extension XMLReader: FeedableReader {}
extension JSONReader: FeedableReader {}

/// Feeds a reader with the parts of a sequence.
final class PartFeeder<Reader: FeedableReader & ~Copyable, Parts: AsyncSequence>: ElementFeeder
where Parts.Element: Sequence<UInt8> {
  private var reader: Reader
  private var parts: Parts.AsyncIterator
  private var isFinished = false
  private var hasEnded = false

  init(_ reader: consuming Reader, _ parts: Parts) {
    self.reader = reader
    self.parts = parts.makeAsyncIterator()
  }

  func next(isolation actor: isolated (any Actor)?) async throws -> Reader.Output? {
    if hasEnded { return nil }
    do {
      while true {
        if let output = try reader.next() { return output }
        if isFinished { break }
        if let part = try await parts.next(isolation: actor) {
          reader.feed(part)
        } else {
          // Some sequences end when their task is cancelled: then the document is not to blame.
          try Task.checkCancellation()
          reader.finish()
          isFinished = true
        }
      }
    } catch {
      hasEnded = true
      throw error
    }
    hasEnded = true
    return nil
  }
}
