// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
@_spi(Loop) import LongLinkTransport

/// A paged list on its loop.
final class PagedRun<Element: Sendable, Position: Hashable & Sendable> {
  typealias PageOf = Page<Element, Position>
  typealias Outcome = Result<PageOf?, CallError>

  /// A page that is loading, and the callers that wait for it.
  private struct Load {
    let number: UInt64
    let position: Position
    let isRefresh: Bool
    var id: UInt64?
    var waiters: [(id: UInt64, completion: (Outcome) -> Void)]
  }

  /// The most consecutive empty pages, each of which names a next page.
  private static var mostEmpty: Int { 100 }

  private let core: LoopBound<CallCore>
  private let configuration: CallConfiguration
  private let first: Position
  private let size: Int
  private let call: @Sendable (Position, Int) -> Call<PageOf>
  private(set) var pages: [PageOf] = []
  private var next: Position?
  /// The positions of the pages that were loaded.
  private var asked: Set<Position> = []
  /// The number of refreshes.
  private(set) var generation = 0
  private var load: Load?
  private var nextNumber: UInt64 = 0
  /// The number of consecutive empty pages at the end of the list.
  private var empty = 0

  init(
    first: Position, size: Int, _ core: LoopBound<CallCore>, _ configuration: CallConfiguration,
    call: @escaping @Sendable (Position, Int) -> Call<PageOf>
  ) {
    self.first = first
    self.size = size
    self.core = core
    self.configuration = configuration
    self.call = call
    next = first
  }

  var hasMore: Bool { next != nil }

  /// Calls `completion` with the page at an index of one generation of the list, and loads it if it
  /// is the next one.
  func page(
    at index: Int, of wanted: Int?, _ waiter: UInt64, _ completion: @escaping (Outcome) -> Void
  ) {
    if let wanted, wanted != generation {
      completion(.failure(failure("the list was refreshed; make a new iterator")))
    } else if index < pages.count {
      completion(.success(pages[index]))
    } else {
      loadMore(waiter, completion)
    }
  }

  /// Calls `completion` with the next page, which may already be loading; with nil at the end.
  func loadMore(_ waiter: UInt64, _ completion: @escaping (Outcome) -> Void) {
    if load != nil {
      load?.waiters.append((waiter, completion))
    } else if let next {
      begin(next, isRefresh: false, waiter, completion)
    } else {
      completion(.success(nil))
    }
  }

  /// Replaces the list once its first page has come; the list stays if that fails.
  func refresh(_ waiter: UInt64, _ completion: @escaping (Outcome) -> Void) {
    if load?.isRefresh == true {
      load?.waiters.append((waiter, completion))
      return
    }
    let given = load
    load = nil
    begin(first, isRefresh: true, waiter, completion)
    // The page that was loading belongs to the old list.
    guard let given else { return }
    if let id = given.id { core.value.leave(id) }
    for other in given.waiters {
      other.completion(.failure(failure("the list is being refreshed")))
    }
  }

  private func begin(
    _ position: Position, isRefresh: Bool, _ waiter: UInt64,
    _ completion: @escaping (Outcome) -> Void
  ) {
    nextNumber += 1
    let number = nextNumber
    load = Load(
      number: number, position: position, isRefresh: isRefresh, id: nil,
      waiters: [(waiter, completion)])
    var call = call(position, size)
    // After a refresh, cached later pages belong to the old list.
    if isRefresh || generation > 0 { call.policy.reloads = true }
    do throws(CallError) {
      let prepared = try PreparedCall(call, configuration)
      let id = core.value.begin(prepared) { [self] result in ended(number, result) }
      if load?.number == number { load?.id = id }
    } catch {
      ended(number, .failure(error))
    }
  }

  private func ended(_ number: UInt64, _ result: Result<PageOf, CallError>) {
    // Ignore a page that no caller waits for.
    guard let load, load.number == number else { return }
    self.load = nil
    let outcome: Outcome
    switch result {
    case .success(let page): outcome = take(page, at: load.position, isRefresh: load.isRefresh)
    case .failure(let error): outcome = .failure(error)
    }
    for waiter in load.waiters { waiter.completion(outcome) }
  }

  private func take(_ page: PageOf, at position: Position, isRefresh: Bool) -> Outcome {
    if let next = page.next, next == position || !isRefresh && asked.contains(next) {
      return .failure(
        failure("a page names a next one that was already loaded", code: .decodingFailed))
    }
    empty = page.elements.isEmpty && page.next != nil ? (isRefresh ? 0 : empty) + 1 : 0
    guard empty <= Self.mostEmpty else {
      empty = 0
      return .failure(
        failure("\(Self.mostEmpty) pages in a row have no elements", code: .decodingFailed))
    }
    if isRefresh {
      generation += 1
      pages = []
      asked = []
    }
    pages.append(page)
    asked.insert(position)
    next = page.next
    return .success(page)
  }

  private func failure(
    _ detail: String, code: LongLinkError.Code = .cancelled
  ) -> CallError {
    let delivery: Delivery = code == .cancelled ? .notSent : .answered
    return CallError(
      LongLinkError(code, delivery: delivery, doing: "load a page", detail: detail),
      texts: configuration.texts)
  }

  /// Ends one caller's wait; cancels the page if no other caller waits for it.
  func leave(_ waiter: UInt64) {
    guard let index = load?.waiters.firstIndex(where: { $0.id == waiter }),
      let gone = load?.waiters.remove(at: index), let load
    else { return }
    if load.waiters.isEmpty {
      self.load = nil
      if let id = load.id { core.value.leave(id) }
    }
    gone.completion(.failure(failure("the caller cancelled")))
  }
}
