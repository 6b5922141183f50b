// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkCore

/// Responses that their servers allow to keep, by URL, bounded in bytes; it removes the least
/// recently used first. It has no clock.
///
/// It is stricter than RFC 9111: it keeps only complete responses with 200 to GET without
/// credentials, only what says itself how long it is fresh or has a tag to ask with, and a response
/// that varies only for requests with equal fields.
struct HTTPCache {
  enum Found {
    case nothing
    case fresh(HTTPReply)
    /// May be used if the server says that this tag is still right.
    case stale(HTTPReply, tag: String)
  }

  private struct Entry {
    var reply: HTTPReply
    let vary: [String: String?]
    var tag: String?
    var freshUntil: LinkInstant
    let bytes: Int
    var use: UInt64
  }

  /// About the bytes of an entry without its texts and its body.
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
    uses += 1
    entries[url]?.use = uses
    if CacheControl(fields).isReload == false, now < entry.freshUntil { return .fresh(entry.reply) }
    guard let tag = entry.tag else { return .nothing }
    return .stale(entry.reply, tag: tag)
  }

  /// Keeps a response if that is allowed; otherwise removes an older one.
  mutating func store(
    _ reply: HTTPReply, for url: String, _ fields: HTTPFields, at now: LinkInstant
  ) {
    remove(url)
    let control = CacheControl(reply.fields)
    guard reply.status == 200, !control.isNotStored, !CacheControl(fields).isNotStored,
      let vary = HTTPCache.vary(of: reply, fields)
    else { return }
    let tag = reply.fields["ETag"]
    let age = reply.fields["Age"].flatMap { Int($0) } ?? 0
    let fresh = control.isReload ? 0 : (control.maxAge ?? 0) - max(0, age)
    guard fresh > 0 || tag != nil else { return }
    let size = HTTPCache.size(of: reply, url)
    guard size <= limit else { return }
    while bytes + size > limit, let oldest = entries.min(by: { $0.value.use < $1.value.use }) {
      remove(oldest.key)
    }
    uses += 1
    entries[url] = Entry(
      reply: reply, vary: vary, tag: tag,
      freshUntil: now.advanced(by: .seconds(max(0, fresh))), bytes: size, use: uses)
    bytes += size
  }

  /// Takes what a 304 says about the response with a tag, if that is the one that is kept.
  mutating func refresh(
    _ url: String, _ fields: HTTPFields, tag: String, at now: LinkInstant
  ) {
    guard entries[url]?.tag == tag else { return }
    let control = CacheControl(fields)
    if control.isNotStored { return remove(url) }
    let age = max(0, fields["Age"].flatMap { Int($0) } ?? 0)
    let fresh = control.isReload ? 0 : (control.maxAge ?? 0) - age
    entries[url]?.freshUntil = now.advanced(by: .seconds(max(0, fresh)))
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

  /// The fields of the request that the response depends on; nil if that is not known.
  private static func vary(of reply: HTTPReply, _ fields: HTTPFields) -> [String: String?]? {
    var vary: [String: String?] = [:]
    for value in reply.fields.values(of: "Vary") {
      for name in value.split(whereSeparator: { $0 == "," || $0 == " " || $0 == "\t" }) {
        guard name != "*" else { return nil }
        let name = name.lowercased()
        // The service asks for compression itself, and keeps what it has decompressed.
        if name != "accept-encoding" { vary[name] = .some(fields[name]) }
      }
    }
    return vary
  }
}

/// What the fields `Cache-Control` say.
struct CacheControl {
  private(set) var isNotStored = false
  /// Whether the server has to be asked each time.
  private(set) var isReload = false
  private(set) var maxAge: Int?

  init(_ fields: HTTPFields) {
    for value in fields.values(of: "Cache-Control") {
      for directive in value.split(separator: ",") {
        let parts = directive.split(separator: "=", maxSplits: 1)
        let name = parts.first.map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
        switch name {
        case "no-store": isNotStored = true
        case "no-cache": isReload = true
        case "max-age":
          let text = parts.count > 1 ? parts[1].filter { $0 != "\"" && $0 != " " } : ""
          // A number that cannot be read means that it is not fresh; a huge one is a year.
          maxAge = min(maxAge ?? .max, min(max(0, Int(text) ?? 0), 31_536_000))
        default: break
        }
      }
    }
  }
}
#endif
