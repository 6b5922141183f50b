public import LongLinkConnection
internal import LongLinkCore

/// How a request is made: what a service, a method and a single call each may say.
///
/// A field that is nil says nothing and leaves the word to the next wider one: call, method,
/// service, `APIConfiguration.policy`, and at last the client's own configuration.
public struct RequestPolicy: Hashable, Sendable {
  /// How long the call may take from its making, waiting and reconnecting included.
  public var deadline: Duration?
  /// Larger is more urgent. Where nobody says: 0.
  public var priority: UInt32?
  /// Whether the server is told of a cancel. Where nobody says: it is, so that it can stop the
  /// work.
  public var cancellation: CancellationPolicy?
  /// What happens while there is no connection. Where nobody says: what the client does.
  public var offline: OfflinePolicy?
  /// In which order the request leaves when it has to wait. Where nobody says: by urgency.
  public var order: RequestOrder?
  /// Whether the request may run twice. Where nobody says: ``Idempotency/ifSafe``.
  public var idempotency: Idempotency?
  /// Told to the peer's handler; those of the narrower word stand for those of the wider one.
  public var entries: [String: String]
  /// Whether identical calls that are under way together share one exchange. Where nobody says:
  /// if their answers are cached.
  public var isShared: Bool?
  /// Whether, and for how long, answers are kept. Where nobody says: they are not.
  public var cache: CachePolicy?
  /// Whether the server is asked whatever the cache holds; the answer is kept. Where nobody says:
  /// no.
  public var reloads: Bool?

  /// Makes a policy that says what it is given.
  public init(
    deadline: Duration? = nil,
    priority: UInt32? = nil,
    cancellation: CancellationPolicy? = nil,
    offline: OfflinePolicy? = nil,
    order: RequestOrder? = nil,
    idempotency: Idempotency? = nil,
    entries: [String: String] = [:],
    isShared: Bool? = nil,
    cache: CachePolicy? = nil,
    reloads: Bool? = nil
  ) {
    self.deadline = deadline
    self.priority = priority
    self.cancellation = cancellation
    self.offline = offline
    self.order = order
    self.idempotency = idempotency
    self.entries = entries
    self.isShared = isShared
    self.cache = cache
    self.reloads = reloads
  }

  /// For methods that only read: identical calls share an exchange, and running twice does no harm.
  public static let reading = RequestPolicy(idempotency: .harmless, isShared: true)

  /// This policy, with the words of a wider one where it has none.
  public func over(_ wider: RequestPolicy) -> RequestPolicy {
    RequestPolicy(
      deadline: deadline ?? wider.deadline,
      priority: priority ?? wider.priority,
      cancellation: cancellation ?? wider.cancellation,
      offline: offline ?? wider.offline,
      order: order ?? wider.order,
      idempotency: idempotency ?? wider.idempotency,
      entries: wider.entries.merging(entries) { _, own in own },
      isShared: isShared ?? wider.isShared,
      cache: cache ?? wider.cache,
      reloads: reloads ?? wider.reloads)
  }

  /// What the client is told of it.
  var options: RequestOptions {
    let idempotency = idempotency ?? .ifSafe
    var options = RequestOptions(
      deadline: deadline, cancellation: cancellation ?? .notifyServer, offline: offline,
      priority: priority ?? 0, entries: entries, resending: idempotency.resending,
      order: order ?? .byUrgency)
    if case .key(let key) = idempotency { options.idempotencyKey = key }
    return options
  }
}

/// Whether a request may run twice, and so whether it is sent again by itself.
public enum Idempotency: Hashable, Sendable {
  /// It is sent once.
  case never
  /// It is sent again while it has certainly not run.
  case ifSafe
  /// To run twice does no harm: it is also sent again when it may have run.
  case harmless
  /// As ``harmless``, since each call gets a random key of 16 bytes by which the server tells a
  /// second sending from a second call.
  case freshKey
  /// As ``freshKey``, with a key of the caller's: one that was stored with what is to be done.
  case key([UInt8])

  var resending: Resending {
    switch self {
    case .never: .never
    case .ifSafe: .ifSafe
    case .harmless, .freshKey, .key: .idempotent
    }
  }
}
