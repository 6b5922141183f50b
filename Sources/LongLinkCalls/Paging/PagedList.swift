// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
@_spi(Loop) import LongLinkTransport
import Synchronization

/// A list that a server gives page by page: what was loaded stays, and no page is asked for twice.
///
/// It may be used from any thread. All that iterate over it, and all that load more, share its
/// pages and the one request that is on its way. Several lists know nothing of each other.
public final class PagedList<Element: Sendable, Position: Hashable & Sendable>: Sendable {
  private let run: LoopBound<PagedRun<Element, Position>>
  private let loop: EventLoop
  private let waiters = Atomic<UInt64>(0)

  init(_ run: PagedRun<Element, Position>, on loop: EventLoop) {
    self.run = LoopBound(run, on: loop)
    self.loop = loop
  }

  /// What was loaded so far.
  public var elements: [Element] {
    get async { await loop.run { [run] in run.value.pages.flatMap(\.elements) } }
  }

  /// How many pages were loaded so far.
  public var pageCount: Int {
    get async { await loop.run { [run] in run.value.pages.count } }
  }

  /// Whether there is more to load, for all that is known.
  public var hasMore: Bool {
    get async { await loop.run { [run] in run.value.hasMore } }
  }

  /// Loads the next page; nil at the end of the list.
  ///
  /// Callers at the same time get the same page, and while the list is refreshed its first one.
  /// When it fails, the same page is asked for by the next call. Cancelling the task ends the wait;
  /// the request is cancelled when nobody waits for it any more.
  @discardableResult
  public func loadMore() async throws(CallError) -> Page<Element, Position>? {
    try await wait { run, waiter, completion in run.loadMore(waiter, completion) }
  }

  /// Begins anew at the first page, whatever the cache holds.
  ///
  /// The list stays as it was until that page has come, and when it fails. What was loading fails
  /// with `cancelled`, and so does what iterates over the list as it was, at its next element.
  @discardableResult
  public func refresh() async throws(CallError) -> Page<Element, Position>? {
    try await wait { run, waiter, completion in run.refresh(waiter, completion) }
  }

  fileprivate func page(
    at index: Int, of generation: Int
  ) async throws(CallError) -> Page<Element, Position>? {
    try await wait { run, waiter, completion in
      run.page(at: index, of: generation, waiter, completion)
    }
  }

  fileprivate var generation: Int {
    get async { await loop.run { [run] in run.value.generation } }
  }

  private typealias Outcome = Result<Page<Element, Position>?, CallError>

  private func wait(
    _ begin:
      @escaping @Sendable (
        PagedRun<Element, Position>, UInt64, @escaping (Outcome) -> Void
      ) -> Void
  ) async throws(CallError) -> Page<Element, Position>? {
    let waiter = waiters.wrappingAdd(1, ordering: .relaxed).newValue
    let gate = Gate<Outcome>()
    loop.runOnLoop { [run] in begin(run.value, waiter) { gate.open($0) } }
    let outcome = await withTaskCancellationHandler {
      await gate.value
    } onCancel: {
      loop.execute { [run] in run.value.leave(waiter) }
    }
    return try outcome.get()
  }
}

extension PagedList: AsyncSequence {
  /// Makes an iterator over all elements, from the first on; pages are loaded as they are needed.
  public func makeAsyncIterator() -> Iterator {
    Iterator(list: self)
  }

  /// Gives one element after the other.
  public struct Iterator: AsyncIteratorProtocol {
    private let list: PagedList
    private var generation: Int?
    private var page = 0
    private var elements: ArraySlice<Element> = []
    private var hasEnded = false

    fileprivate init(list: PagedList) {
      self.list = list
    }

    /// The next element; nil at the end of the list.
    ///
    /// Throws when a page cannot be loaded; the next call tries again. Throws `cancelled` when the
    /// task is, and when the list was refreshed meanwhile.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(CallError) -> Element? {
      if generation == nil { generation = await list.generation }
      while elements.isEmpty {
        guard !hasEnded else { return nil }
        guard let next = try await list.page(at: page, of: generation ?? 0) else {
          hasEnded = true
          return nil
        }
        page += 1
        elements = next.elements[...]
        hasEnded = next.next == nil
      }
      return elements.popFirst()
    }

    /// The next element; nil at the end of the list.
    public mutating func next() async throws(CallError) -> Element? {
      try await next(isolation: nil)
    }
  }
}

extension CallClient {
  /// A list that is loaded page by page; nothing is asked for yet.
  ///
  /// `call` makes the call for a page: of the method, with its reply mapped to a ``Page`` that
  /// names the position of the next one, a cursor or a number. `pageSize` is at least 1; anything
  /// else is a programming error.
  public func pages<Element, Position>(
    from first: Position, size pageSize: Int = 50,
    call: @escaping @Sendable (PageRequest<Position>) -> Call<Page<Element, Position>>
  ) -> PagedList<Element, Position> {
    precondition(pageSize >= 1, "a page holds at least one element")
    return PagedList(
      PagedRun(first: first, size: pageSize, core, configuration, call: call), on: client.loop)
  }
}
