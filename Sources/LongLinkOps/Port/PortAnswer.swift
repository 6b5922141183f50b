// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import NIOCore
internal import NIOHTTP1

/// The answer to a request of the port.
struct PortAnswer {
  let status: HTTPResponseStatus
  var headers: [(String, String)]
  private let body: Body

  private enum Body {
    case text(String)
    /// Pieces that are made when the client has taken those before.
    case streamed(() -> ByteBuffer?)
  }

  /// Makes an answer that only the operator should have, and no cache.
  init(_ status: HTTPResponseStatus, _ type: String, _ text: String) {
    self.status = status
    headers = [
      ("Content-Type", type), ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
    ]
    body = .text(text)
  }

  /// Makes an answer in pieces.
  init(_ type: String, streaming next: @escaping () -> String?) {
    status = .ok
    headers = [("Content-Type", type)]
    body = .streamed { next().map { ByteBuffer(string: $0) } }
  }

  /// Makes an answer in pieces of bytes.
  init(_ type: String, streamingBytes next: @escaping () -> [UInt8]?) {
    status = .ok
    headers = [("Content-Type", type)]
    body = .streamed { next().map { ByteBuffer(bytes: $0) } }
  }

  /// Makes an answer in JSON.
  static func json(_ value: some Encodable, _ status: HTTPResponseStatus = .ok) -> PortAnswer {
    PortAnswer(status, "application/json", JSONText.of(value) + "\n")
  }

  /// Makes a page of plain text. Lines for which it has no room are left out, and counted at the
  /// end.
  static func text(_ text: String) -> PortAnswer {
    var text = text
    if text.utf8.count > PortLimits.answer {
      let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
      var room = PortLimits.page
      let shown = lines.prefix { line in
        room -= line.utf8.count + 1
        return room >= 0
      }
      // The last line is empty.
      let note = PageText.note(ofLeftOut: lines.count - 1 - shown.count, "lines")
      text = shown.map { $0 + "\n" }.joined() + note + "\n"
    }
    return PortAnswer(.ok, "text/plain; charset=utf-8", text)
  }

  /// Makes a page for a browser, which loads nothing else.
  static func html(_ page: HTMLPage) -> PortAnswer {
    let nonce = String(UInt64.random(in: 0...(.max)), radix: 36)
    var answer = PortAnswer(.ok, "text/html; charset=utf-8", page.text(nonce: nonce))
    answer.headers.append(
      (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'nonce-\(nonce)'; base-uri 'none'; form-action 'none'; "
          + "frame-ancestors 'none'"
      ))
    return answer
  }

  /// Makes an answer that says what is wrong, in JSON or else as text.
  static func problem(
    _ status: HTTPResponseStatus, _ text: String, as form: PortRequest.Form
  ) -> PortAnswer {
    if form == .json { return json(Problem(error: text), status) }
    return PortAnswer(status, "text/plain; charset=utf-8", text + "\n")
  }

  private struct Problem: Encodable {
    let error: String
  }

  /// The number of bytes; nil if it is not known.
  var length: Int? {
    if case .text(let text) = body { text.utf8.count } else { nil }
  }

  /// Returns a function that returns the pieces one by one, and nil after the last one.
  func pieces() -> () -> ByteBuffer? {
    switch body {
    case .streamed(let next): return next
    case .text(let text):
      var rest = ByteBuffer(string: text)
      return {
        let size = min(PortLimits.piece, rest.readableBytes)
        return size == 0 ? nil : rest.readSlice(length: size)
      }
    }
  }
}
#endif
