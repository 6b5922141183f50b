public import LongLinkConnection
internal import LongLinkCore
internal import Synchronization

/// Keeps account of requests, from their making to their running and ending. From any thread.
///
/// Give each request a key of its own that its body carries: tell `asked` when it is made, `ran` as
/// the first thing in the handler, and `ended` when its caller hears of the end.
public final class RequestLedger: Sendable {
  private struct Entry {
    var mayRunAgain = false
    var isAsked = false
    var runs = 0
    var end: End?
  }

  private enum End {
    case success
    case failure(LongLinkError)
    /// Its caller has died with its process: nobody was told anything.
    case forgotten
  }

  private struct State {
    var entries: [UInt64: Entry] = [:]
    var early: [(Promise, String)] = []
  }

  private let state = Mutex(State())

  /// Makes an empty ledger.
  public init() {}

  /// Tells that a request is made; `mayRunAgain` where it is marked idempotent.
  public func asked(_ key: UInt64, mayRunAgain: Bool = false) {
    state.withLock { state in
      if state.entries[key]?.isAsked == true {
        state.early.append((.endsOnce, "request \(key) was made twice"))
      }
      state.entries[key, default: Entry()].isAsked = true
      state.entries[key]?.mayRunAgain = mayRunAgain
    }
  }

  /// Tells that the handler of a request runs.
  public func ran(_ key: UInt64) {
    state.withLock { $0.entries[key, default: Entry()].runs += 1 }
  }

  /// Tells how a request ended; `isOwnAnswer` is whether a success carried what it has to carry.
  public func ended(
    _ key: UInt64,
    _ result: Result<[UInt8], LongLinkError>,
    isOwnAnswer: Bool = true
  ) {
    state.withLock { state in
      if state.entries[key]?.end != nil {
        state.early.append((.endsOnce, "request \(key) ended twice, now with \(result.word)"))
      }
      if !isOwnAnswer {
        state.early.append((.ownAnswers, "request \(key) was given another answer than its own"))
      }
      switch result {
      case .success: state.entries[key, default: Entry()].end = .success
      case .failure(let error): state.entries[key, default: Entry()].end = .failure(error)
      }
    }
  }

  /// Tells that the caller of a request has died with its process: nobody hears of the end.
  public func forgot(_ key: UInt64) {
    state.withLock { $0.entries[key]?.end = .forgotten }
  }

  /// How many requests were made.
  public var askedCount: Int {
    state.withLock { $0.entries.values.count { $0.isAsked } }
  }

  /// How many requests have ended.
  public var endedCount: Int {
    state.withLock { $0.entries.values.count { $0.end != nil } }
  }

  /// How many requests have succeeded.
  public var succeededCount: Int {
    state.withLock { $0.entries.values.count { if case .success = $0.end { true } else { false } } }
  }

  /// How often handlers ran.
  public var runCount: Int {
    state.withLock { $0.entries.values.reduce(0) { $0 + $1.runs } }
  }

  /// The promises that are broken; to be asked when every handler has ended.
  public var broken: [(promise: Promise, detail: String)] {
    state.withLock { state in
      var broken = state.early.map { (promise: $0.0, detail: $0.1) }
      for key in state.entries.keys.sorted() {
        guard let entry = state.entries[key] else { continue }
        broken += Self.judge(key, entry).map { (promise: $0.0, detail: $0.1) }
      }
      return broken
    }
  }

  private static func judge(_ key: UInt64, _ entry: Entry) -> [(Promise, String)] {
    guard entry.isAsked else {
      return [(.ownAnswers, "a request \(key) ran that nobody has made")]
    }
    guard let end = entry.end else { return [(.endsOnce, "request \(key) has not ended")] }
    var broken: [(Promise, String)] = []
    if entry.runs > 1, !entry.mayRunAgain {
      broken.append((.truthfulDelivery, "request \(key) ran \(entry.runs) times"))
    }
    switch end {
    case .success where entry.runs == 0:
      broken.append((.truthfulDelivery, "request \(key) succeeded and never ran"))
    case .success:
      break
    case .failure(let error) where error.delivery.isSafeToRetry && entry.runs > 0:
      broken.append(
        (.truthfulDelivery, "request \(key) was said to be safe to send again, and ran: \(error)"))
    case .failure(let error) where error.delivery == .answered && entry.runs == 0:
      broken.append((.truthfulDelivery, "request \(key) was answered and never ran: \(error)"))
    case .failure, .forgotten:
      break
    }
    return broken
  }
}

extension Result where Success == [UInt8], Failure == LongLinkError {
  /// The outcome in a word or two.
  var word: String {
    switch self {
    case .success(let body): "success, \(body.count) bytes"
    case .failure(let error): "\(error)"
    }
  }
}
