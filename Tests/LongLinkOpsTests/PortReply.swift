// SPDX-License-Identifier: Apache-2.0

#if Operations
import Foundation

/// An answer of the port.
struct PortReply {
  let status: Int
  /// The headers by their names in lower case. Those that come twice are joined with a comma.
  let headers: [String: String]
  let body: String

  /// Reads an answer in HTTP/1.1; nil if it is none.
  init?(_ text: String) {
    guard let end = text.range(of: "\r\n\r\n") else { return nil }
    let lines = text[..<end.lowerBound].components(separatedBy: "\r\n")
    guard let number = lines.first?.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { return nil }
    status = number
    let pairs = lines.dropFirst().compactMap { line -> (String, String)? in
      guard let colon = line.firstIndex(of: ":") else { return nil }
      let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
      return (line[..<colon].lowercased(), value)
    }
    headers = Dictionary(pairs) { "\($0), \($1)" }
    let rest = String(text[end.upperBound...])
    body =
      headers["transfer-encoding"] == "chunked"
      ? String(decoding: Self.joined(Array(rest.utf8)[...]), as: UTF8.self) : rest
  }

  /// The bytes of chunks.
  static func joined(_ chunks: ArraySlice<UInt8>) -> [UInt8] {
    var (rest, body) = (chunks, [UInt8]())
    while let end = rest.firstIndex(of: 13),
      let size = Int(String(decoding: rest[..<end], as: UTF8.self), radix: 16), size > 0
    {
      rest = rest[end...].dropFirst(2)
      body += rest.prefix(size)
      rest = rest.dropFirst(size + 2)
    }
    return body
  }

  func json<Value: Decodable>(as type: Value.Type = Value.self) throws -> Value {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(type, from: Data(body.utf8))
  }

  /// The value of a metric with these labels; nil if there is none.
  func metric(_ name: String) -> Double? {
    body.split(separator: "\n").first { $0.hasPrefix(name + " ") }
      .flatMap { Double($0.dropFirst(name.count + 1)) }
  }
}

/// What the tests read of `/livez` and `/readyz`.
struct Health: Decodable {
  struct Loop: Decodable {
    let loop: Int
    let live: Bool
    let ranMsAgo: Int
    let blockedBy: String?
  }

  let live: Bool?
  let loops: [Loop]?
  let ready: Bool?
  let reasons: [String]?
}

/// What the tests read of `/connections`.
struct ConnectionPage: Decodable {
  struct Row: Decodable {
    struct Stream: Decodable {
      let serial: UInt32
      let method: String
      let credit: Int
    }

    struct UnderWay: Decodable {
      let serial: UInt32
      let method: String
      let ageMs: Int
    }

    let id: UInt64
    let peer: String
    let name: String
    let principal: String?
    let state: String
    let ageMs: Int
    let roundTripMs: Double?
    let inFlight: Int
    let streams: [Stream]
    let bytesIn: Int
    let bytesOut: Int
    let features: [String]
    let tls: String?
    let reason: String?
    let detail: String?
    let endedMsAgo: Int?
    let underWay: [UnderWay]?
    let underWayCount: Int?
  }

  let connections: [Row]
  let next: UInt64?
  let incomplete: [Int]?
}
#endif
