// SPDX-License-Identifier: Apache-2.0

/// A sequence of bytes in pieces: those of an upload, or of the body of a response over HTTP.
public struct BytePieces<Failure: Error>: AsyncSequence, Sendable {
  private let begin: @Sendable () -> Iterator

  /// Makes a sequence of what makes its readers.
  package init(_ begin: @escaping @Sendable () -> Iterator) {
    self.begin = begin
  }

  /// Returns an iterator over the pieces.
  public func makeAsyncIterator() -> Iterator { begin() }

  /// The iterator of the sequence.
  public struct Iterator: AsyncIteratorProtocol {
    private let take: (isolated (any Actor)?) async throws(Failure) -> [UInt8]?

    package init(
      _ take: @escaping (isolated (any Actor)?) async throws(Failure) -> [UInt8]?
    ) {
      self.take = take
    }

    /// Returns the next piece; nil at the end, and after an error.
    ///
    /// If the bytes end with an error, it is thrown once all bytes before it were returned.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(Failure) -> [UInt8]? {
      try await take(actor)
    }

    /// Returns the next piece; nil at the end, and after an error.
    ///
    /// If the bytes end with an error, it is thrown once all bytes before it were returned.
    public mutating func next() async throws(Failure) -> [UInt8]? {
      try await next(isolation: nil)
    }
  }
}
