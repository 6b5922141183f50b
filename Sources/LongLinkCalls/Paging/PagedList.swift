// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
@_spi(Loop) import LongLinkTransport
import Synchronization

/// A list that is loaded page by page. It keeps the loaded pages, and requests no page twice.
///
/// It may be used from any thread. All iterators and callers of a list share its pages and its one
/// request in flight. Several lists are independent of each other.
public final class PagedList<Element: Sendable, Position: Hashable & Sendable>: Sendable {
  private let run: LoopBound<PagedRun<Element, Position>>
  private let loop: EventLoop
  private let waiters = Atomic<UInt64>(0)

  init(_ run: PagedRun<Element, Position>, on loop: EventLoop) {
    self.run = LoopBound(run, on: loop)
    self.loop = loop
  }

  /// The elements loaded so far, in the order of the list.
  public var elements: [Element] {
    get async { await loop.run { [run] in run.value.pages.flatMap(\.elements) } }
  }

  /// The number of pages loaded so far.
  public var pageCount: Int {
    get async { await loop.run { [run] in run.value.pages.count } }
  }

  /// Whether the last loaded page named a next one, or no page was loaded yet.
  public var hasMore: Bool {
    get async { await loop.run { [run] in run.value.hasMore } }
  }

  /// Loads and returns the next page; nil at the end of the list.
  ///
  /// Concurrent callers get the same page, or, during a refresh, the first one. After a failure,
  /// the next call requests the same page again. Cancelling the task ends the wait with
  /// `cancelled`; the request is cancelled when its last waiting task is.
  ///
  /// Besides the errors of a call, throws `decodingFailed` if the page names as the next one a page
  /// that was already loaded, or after more than 100 pages in a row without elements.
  @discardableResult
  public func loadMore() async throws(CallError) -> Page<Element, Position>? {
    try await wait { run, waiter, completion in run.loadMore(waiter, completion) }
  }

  /// Reloads the list from its first page, bypassing the cache, and returns that page.
  ///
  /// The list stays unchanged until its first page has come, and if the request fails. A page that
  /// was loading fails with `cancelled`, and an iterator over the old list fails with it at its
  /// next page.
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
  /// Makes an iterator over all elements from the first; pages are loaded as needed.
  public func makeAsyncIterator() -> Iterator {
    Iterator(list: self)
  }

  /// An iterator over the elements of a list.
  public struct Iterator: AsyncIteratorProtocol {
    private let list: PagedList
    private var generation: Int?
    private var page = 0
    private var elements: ArraySlice<Element> = []
    private var hasEnded = false

    fileprivate init(list: PagedList) {
      self.list = list
    }

    /// Returns the next element; nil at the end of the list.
    ///
    /// Throws if a page cannot be loaded; the next call tries again. Throws `cancelled` if the task
    /// is cancelled, or if the list was refreshed meanwhile.
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

    /// Returns the next element; nil at the end of the list. Throws as `next(isolation:)` does.
    public mutating func next() async throws(CallError) -> Element? {
      try await next(isolation: nil)
    }
  }
}

extension CallClient {
  /// Makes a list that is loaded page by page; it makes no request yet.
  ///
  /// `call` makes the call for a page, with the method's reply mapped to a ``Page``. It gets the
  /// page's position (`Page.next` of the previous page, or the list's first position), which is a
  /// cursor or a number, and the most elements that the page should hold. `pageSize` (default 50)
  /// must be at least 1; otherwise it traps.
  public func pages<Element, Position>(
    from first: Position, size pageSize: Int = 50,
    call: @escaping @Sendable (_ position: Position, _ size: Int) -> Call<Page<Element, Position>>
  ) -> PagedList<Element, Position> {
    precondition(pageSize >= 1, "a page's size must be at least 1")
    return PagedList(
      PagedRun(first: first, size: pageSize, core, configuration, call: call), on: client.loop)
  }
}
