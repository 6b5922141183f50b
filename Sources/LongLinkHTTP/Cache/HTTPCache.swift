// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkCore

/// Responses whose servers allow to keep them, by URL, bounded in bytes. The least recently used is
/// removed first. It has no clock.
///
/// It is stricter than RFC 9111: it keeps only complete responses with 200 to GET requests without
/// credentials, and only if a response states how long it is fresh or has a tag to revalidate it
/// with. A response that varies is used only for requests with equal fields.
struct HTTPCache {
  enum Found {
    case nothing
    case fresh(HTTPReply)
    /// A response that may be used if the server confirms that the tag is still current.
    case stale(HTTPReply, tag: String)
  }

  private struct Entry {
    var reply: HTTPReply
    let vary: [String: String?]
    var tag: String?
    /// The response's age in seconds when it, or the 304 that confirmed it, was received.
    var age: Int
    var received: LinkInstant
    /// The age up to which the response is fresh, in seconds.
    var lifetime: Int
    let bytes: Int
    var use: UInt64
  }

  /// The approximate bytes of an entry besides its texts and its body.
  static let overhead = 512

  let limit: Int
  private var entries: [String: Entry] = [:]
  private(set) var bytes = 0
  private var uses: UInt64 = 0

  init(limit: Int) { self.limit = limit }

  var count: Int { entries.count }

  mutating func find(_ url: String, _ fields: HTTPFields, at now: LinkInstant) -> Found {
    guard let entry = entries[url],
      entry.vary.allSatisfy({ fields[$0.key] == $0.value })
    else { return .nothing }
    let control = CacheControl(fields)
    guard !control.isNotStored else { return .nothing }
    uses += 1
    entries[url]?.use = uses
    let age = entry.age + Int(entry.received.duration(to: now).components.seconds)
    let reply = entry.reply.fromCache(age: age)
    let lifetime = min(entry.lifetime - (control.minFresh ?? 0), control.maxAge ?? .max)
    if !control.isReload, age < lifetime { return .fresh(reply) }
    guard let tag = entry.tag else { return .nothing }
    return .stale(reply, tag: tag)
  }

  /// Keeps a response if that is allowed; otherwise removes an older response of the URL.
  mutating func store(
    _ reply: HTTPReply, for url: String, _ fields: HTTPFields, at now: LinkInstant, date: Int64
  ) {
    remove(url)
    let control = CacheControl(reply.fields)
    guard reply.status == 200, !control.isNotStored, !CacheControl(fields).isNotStored,
      let vary = HTTPCache.vary(of: reply, fields)
    else { return }
    let reply = reply.withoutFieldsOfConnection
    let tag = reply.fields["ETag"]
    let age = HTTPCache.age(reply.fields, date: date)
    let lifetime = control.isReload ? 0 : control.maxAge ?? 0
    guard age < lifetime || tag != nil else { return }
    let size = HTTPCache.size(of: reply, url)
    guard size <= limit else { return }
    while bytes + size > limit, let oldest = entries.min(by: { $0.value.use < $1.value.use }) {
      remove(oldest.key)
    }
    uses += 1
    entries[url] = Entry(
      reply: reply, vary: vary, tag: tag, age: age, received: now, lifetime: lifetime,
      bytes: size, use: uses)
    bytes += size
  }

  /// Updates the kept response with a tag from a 304, and returns it; nil if it is no longer kept.
  @discardableResult
  mutating func refresh(
    _ url: String, _ fields: HTTPFields, tag: String, at now: LinkInstant, date: Int64
  ) -> HTTPReply? {
    guard var entry = entries[url], entry.tag == tag else { return nil }
    let control = CacheControl(fields)
    entry.age = HTTPCache.age(fields, date: date)
    entry.received = now
    entry.lifetime = control.isReload ? 0 : control.maxAge ?? 0
    if control.isNotStored { remove(url) } else { entries[url] = entry }
    return entry.reply.fromCache(age: entry.age)
  }

  /// The age of a response when it is received, in seconds, from its `Age` and its `Date`; at most
  /// a year. An unreadable `Age` counts as a year.
  private static func age(_ fields: HTTPFields, date now: Int64) -> Int {
    let ages = fields.values(of: "Age").flatMap { $0.split(separator: ",") }.map { text in
      Int(text.filter { $0 != " " && $0 != "\t" }) ?? CacheControl.mostAge
    }
    let apparent = fields["Date"].flatMap(HTTPDate.read).map { Int(now - $0) } ?? 0
    return min(max(ages.max() ?? 0, apparent, 0), CacheControl.mostAge)
  }

  mutating func remove(_ url: String) {
    guard let entry = entries.removeValue(forKey: url) else { return }
    bytes -= entry.bytes
  }

  private static func size(of reply: HTTPReply, _ url: String) -> Int {
    var size = overhead + url.utf8.count + reply.url.utf8.count + reply.body.count
    for field in reply.fields.fields { size += 32 + field.name.utf8.count + field.value.utf8.count }
    return size
  }

  /// The request's fields on which the response depends, with their values; nil if it depends on
  /// others.
  private static func vary(of reply: HTTPReply, _ fields: HTTPFields) -> [String: String?]? {
    var vary: [String: String?] = [:]
    for value in reply.fields.values(of: "Vary") {
      for name in value.split(whereSeparator: { $0 == "," || $0 == " " || $0 == "\t" }) {
        guard name != "*" else { return nil }
        let name = name.lowercased()
        // The service itself asks for compression, and keeps decompressed bodies.
        if name != "accept-encoding" { vary[name] = .some(fields[name]) }
      }
    }
    return vary
  }
}

/// The directives of the `Cache-Control` fields.
struct CacheControl {
  private(set) var isNotStored = false
  /// Whether the server has to be asked each time (`no-cache`).
  private(set) var isReload = false
  private(set) var maxAge: Int?
  /// How many more seconds a response must stay fresh for the request (`min-fresh`); nil for none.
  private(set) var minFresh: Int?

  /// The highest age, in seconds: a year.
  static let mostAge = 31_536_000

  init(_ fields: HTTPFields) {
    for value in fields.values(of: "Cache-Control") {
      for directive in value.split(separator: ",") {
        let parts = directive.split(separator: "=", maxSplits: 1)
        let name = parts.first.map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
        switch name {
        case "no-store": isNotStored = true
        case "no-cache": isReload = true
        // An unreadable number means that the response is not fresh; a huge number is a year.
        case "max-age":
          maxAge = min(maxAge ?? .max, CacheControl.seconds(parts) ?? 0)
        case "min-fresh":
          minFresh = max(minFresh ?? 0, CacheControl.seconds(parts) ?? CacheControl.mostAge)
        default: break
        }
      }
    }
  }

  private static func seconds(_ parts: [Substring]) -> Int? {
    let text = parts.count > 1 ? parts[1].filter { $0 != "\"" && $0 != " " } : ""
    return Int(text).map { min(max(0, $0), mostAge) }
  }
}

extension HTTPReply {
  /// Returns the reply as the cache gives it, with `age` in seconds as its `Age`.
  fileprivate func fromCache(age: Int) -> HTTPReply {
    var fields = fields
    fields["Age"] = "\(age)"
    return HTTPReply(status: status, fields: fields, url: url, body: body, isFromCache: true)
  }

  /// The reply without the fields that concern its connection (RFC 9110, section 7.6.1).
  fileprivate var withoutFieldsOfConnection: HTTPReply {
    var named: Set = ["connection"]
    for value in fields.values(of: "Connection") {
      for name in value.split(separator: ",") {
        named.insert(name.filter { $0 != " " && $0 != "\t" }.lowercased())
      }
    }
    let fields = fields.without(named)
    return HTTPReply(status: status, fields: fields, url: url, body: body, isFromCache: false)
  }
}
#endif
