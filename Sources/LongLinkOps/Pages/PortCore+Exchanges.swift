// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore
internal import LongLinkServer

/// The slowest and the last failed requests of each method.
extension PortCore {
  private struct Exchanges: Encodable {
    let methods: [Method]
    /// The loops that did not answer, with the age of what they have told; nil if all did.
    let incomplete: [Int]?
    let stale: [StaleLoop]?
    /// The number of methods for which the page has no room; nil if there are none.
    let leftOut: Int?
  }

  private struct Method: Encodable {
    let method: String
    let slowest: [Exchange]
    let failed: [Exchange]
  }

  private struct Exchange: Encodable {
    let serial: UInt32
    let connection: UInt64
    let code: UInt32
    let milliseconds: Double
    let endedMsAgo: Int64

    init(_ exchange: EndedExchange, at now: LinkInstant) {
      serial = exchange.serial
      connection = exchange.connection
      code = exchange.code
      milliseconds = Double(exchange.time / 1_000) / 1_000
      endedMsAgo = max(0, (now - exchange.ended) / 1_000_000)
    }

    var cells: [String] {
      [
        "\(serial)", "\(connection)", code == 0 ? "" : "\(code)", PageText.number(milliseconds),
        PageText.time(endedMsAgo * 1_000_000) + " ago",
      ]
    }

    static let headings = ["serial", "connection", "code", "ms", "ended"]
  }

  func exchanges(_ form: PortRequest.Form, _ reply: @escaping (PortAnswer) -> Void) {
    survey { answers in
      let now = self.nowOfLoops
      let all = self.totals.methods.filter { !$0.slowest.isEmpty || !$0.failed.isEmpty }
      var (methods, texts, size) = ([Method](), [String](), 0)
      for merged in all {
        let method = Method(
          method: merged.name, slowest: merged.slowest.map { Exchange($0, at: now) },
          failed: merged.failed.map { Exchange($0, at: now) })
        let text = form == .json ? JSONText.of(method) : self.text(of: method, form)
        size += text.utf8.count + 1
        guard size <= PortLimits.page else { break }
        methods.append(method)
        texts.append(text)
      }
      let leftOut = all.count - methods.count
      switch form {
      case .json:
        reply(
          .json(
            Exchanges(
              methods: methods, incomplete: answers.stale?.map(\.loop), stale: answers.stale,
              leftOut: leftOut == 0 ? nil : leftOut)))
      case .text:
        let notes = self.notes(answers, leftOut).map { $0 + "\n" }
        reply(.text((texts + notes).joined(separator: "\n")))
      case .html:
        var page = HTMLPage("Exchanges", refresh: 5)
        page.body =
          texts.joined() + self.notes(answers, leftOut).map { "<p>\($0)</p>" }.joined()
        reply(.html(page))
      }
    }
  }

  private func notes(_ answers: [LoopAnswer], _ leftOut: Int) -> [String] {
    answers.notes + [PageText.note(ofLeftOut: leftOut, "methods")].filter { !$0.isEmpty }
  }

  private func text(of method: Method, _ form: PortRequest.Form) -> String {
    let lists = [("slowest", method.slowest), ("failed last", method.failed)]
      .filter { !$0.1.isEmpty }
    if form == .html {
      return "<h2>\(HTMLPage.escaped(method.method))</h2>"
        + lists.map { title, exchanges in
          "<p class=\"soft\">\(title)</p>"
            + HTMLPage.table(
              Exchange.headings, exchanges.map { HTMLPage.row($0.cells.map(HTMLPage.escaped)) })
        }.joined()
    }
    return lists.map { title, exchanges in
      "\(method.method), \(title)\n"
        + TextTable.of(Exchange.headings, exchanges.map(\.cells), numbers: [0, 1, 2, 3])
    }.joined(separator: "\n")
  }
}
#endif
