// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore
internal import LongLinkServer
internal import NIOHTTP1

/// Connections, open and closed.
extension PortCore {
  /// Which connections are wanted.
  private struct Selection {
    var after: UInt64 = 0
    var limit = 100
    var isClosed = false

    /// Reads the parameters of a request, whose names are known to be right. Throws a text that
    /// names the wrong one.
    init(_ parameters: [(name: Substring, value: Substring)]) throws(WrongParameter) {
      for (name, value) in parameters {
        switch name {
        case "after":
          guard let number = PortRequest.number(value) else {
            throw WrongParameter(text: "after has to be the number of a connection")
          }
          after = number
        case "limit":
          guard let number = PortRequest.number(value), (1...200).contains(number) else {
            throw WrongParameter(text: "limit has to be within 1 and 200")
          }
          limit = Int(number)
        default:
          guard value == "open" || value == "closed" else {
            throw WrongParameter(text: "state has to be open or closed")
          }
          isClosed = value == "closed"
        }
      }
    }
  }

  private struct WrongParameter: Error {
    let text: String
  }

  func connections(_ request: PortRequest, _ reply: @escaping (PortAnswer) -> Void) {
    let selection: Selection
    do throws(WrongParameter) {
      selection = try Selection(request.parameters)
    } catch {
      return reply(.problem(.badRequest, error.text, as: request.form))
    }
    if selection.isClosed {
      let ended = watch.endedConnections.filter { $0.id > selection.after }
        .sorted { $0.id < $1.id }
      let now = nowOfLoops
      let rows = ended.lazy.map { ConnectionRow($0, at: now) { self.name(of: $0, $1) } }
      return reply(
        page(of: rows, selection, whole: ended.count <= selection.limit, [], request.form))
    }
    openConnections(after: selection.after, most: selection.limit + 1) { answers in
      let views = answers.flatMap { $0 ?? [] }.sorted { $0.id < $1.id }
      let rows = views.lazy.map { ConnectionRow($0) { self.name(of: $0) } }
      reply(
        self.page(
          of: rows, selection, whole: views.count <= selection.limit,
          answers.indices.filter { answers[$0] == nil }, request.form))
    }
  }

  /// The current time on the clock of the server's loops.
  var nowOfLoops: LinkInstant {
    couriersNow.first?.loop.loop.driver.now ?? .distantPast
  }

  private func page(
    of rows: some Sequence<ConnectionRow>, _ selection: Selection, whole: Bool,
    _ incomplete: [Int], _ form: PortRequest.Form
  ) -> PortAnswer {
    var list = ConnectionList(isClosed: selection.isClosed, form)
    var isWhole = whole
    for row in rows.prefix(selection.limit) {
      guard list.add(row) else {
        isWhole = false
        break
      }
    }
    return list.answer(next: isWhole ? nil : list.last, incomplete)
  }

  func connection(
    _ id: UInt64, _ form: PortRequest.Form, _ reply: @escaping (PortAnswer) -> Void
  ) {
    if let row = closedRow(id) { return reply(detailPage(row, form)) }
    connection { view, incomplete in
      // It may have ended meanwhile.
      if let row = view.map({ ConnectionRow($0) { self.name(of: $0) } }) ?? self.closedRow(id) {
        reply(self.detailPage(row, form))
      } else {
        reply(self.unknown(id, incomplete, "", form))
      }
    } _: {
      $0.connections([id]).first
    }
  }

  /// Drains or closes an open connection, which `command` does on its loop.
  func end(
    _ id: UInt64, _ reply: @escaping (PortAnswer) -> Void,
    _ command: @escaping @Sendable (ServerLoopVisit) -> ConnectionView?
  ) {
    let doing = LoopCommand<ConnectionView>()
    connection { _, incomplete in
      switch doing.end() {
      case .done(let view): reply(.json(ConnectionRow(view) { self.name(of: $0) }, .accepted))
      case .begun:
        let text = "a loop has begun it and is late, so that it may be done: look at the connection"
        reply(.json(Incomplete(error: text, incomplete: incomplete), .gatewayTimeout))
      case .notDone where self.closedRow(id) != nil:
        reply(.problem(.conflict, "the connection has ended already", as: .json))
      case .notDone:
        reply(self.unknown(id, incomplete, "; nothing was done, and will not be", .json))
      }
    } _: { visit in
      doing.run { command(visit) }
    }
  }

  private func closedRow(_ id: UInt64) -> ConnectionRow? {
    let now = nowOfLoops
    return watch.endedConnections.first { $0.id == id }
      .map { ConnectionRow($0, at: now) { self.name(of: $0, $1) } }
  }

  private struct Incomplete: Encodable {
    let error: String
    let incomplete: [Int]
  }

  /// The answer for a connection that no loop has, or that may be one of a loop that hangs.
  private func unknown(
    _ id: UInt64, _ incomplete: [Int], _ consequence: String, _ form: PortRequest.Form
  ) -> PortAnswer {
    guard !incomplete.isEmpty else {
      return .problem(.notFound, "there is no connection \(id)", as: form)
    }
    let text = "not all loops answered, so that it is not known\(consequence)"
    guard form == .json else { return .problem(.serviceUnavailable, text, as: form) }
    return .json(Incomplete(error: text, incomplete: incomplete), .serviceUnavailable)
  }

  private func detailPage(_ row: ConnectionRow, _ form: PortRequest.Form) -> PortAnswer {
    switch form {
    case .json: return .json(row)
    case .text:
      return .text(TextTable.of(["", ""], row.details.map { [$0.name, $0.value] }))
    case .html:
      var page = HTMLPage("Connection \(row.id)", refresh: row.reason == nil ? 2 : nil)
      page.addTable(
        [], row.details.map { HTMLPage.row([$0.name, HTMLPage.escaped($0.value)]) })
      return .html(page)
    }
  }
}

/// A list of connections in one form, which ends early if it becomes too large.
private struct ConnectionList {
  private let isClosed: Bool
  private let form: PortRequest.Form
  private var rows: [String] = []
  private var cells: [[String]] = []
  private var size = 0
  /// The widths of the columns of plain text, in bytes.
  private var widths: [Int]
  /// The number of the last connection in the list; nil if it is empty.
  private(set) var last: UInt64?

  init(isClosed: Bool, _ form: PortRequest.Form) {
    self.isClosed = isClosed
    self.form = form
    widths = (isClosed ? ConnectionRow.closedHeadings : ConnectionRow.openHeadings)
      .map(\.utf8.count)
  }

  /// Adds a connection; false if there is no room.
  mutating func add(_ row: ConnectionRow) -> Bool {
    if form == .text {
      let cells = row.cells
      let wider = zip(widths, cells).map { max($0, $1.utf8.count) }
      // Each line is at most as long as all columns together.
      let length = wider.reduce(0) { $0 + $1 + 2 }
      guard length * (self.cells.count + 2) <= PortLimits.page else { return false }
      widths = wider
      self.cells.append(cells)
    } else {
      let text = form == .json ? JSONText.of(row) : html(row)
      guard size + text.utf8.count + 1 <= PortLimits.page else { return false }
      size += text.utf8.count + 1
      rows.append(text)
    }
    last = row.id
    return true
  }

  private func html(_ row: ConnectionRow) -> String {
    var cells = row.cells.map(HTMLPage.escaped)
    cells[0] = "<a href=\"/connections/\(row.id)\">\(row.id)</a>"
    return HTMLPage.row(cells)
  }

  /// The page. `next` is where the list goes on; nil if it is whole.
  func answer(next: UInt64?, _ incomplete: [Int]) -> PortAnswer {
    let note = PageText.note(of: incomplete)
    let headings = isClosed ? ConnectionRow.closedHeadings : ConnectionRow.openHeadings
    switch form {
    case .json:
      let missing = incomplete.isEmpty ? "" : ",\"incomplete\":\(JSONText.of(incomplete))"
      return PortAnswer(
        .ok, "application/json",
        "{\"connections\":[\(rows.joined(separator: ","))]\(missing),"
          + "\"next\":\(JSONText.of(Nullable(next)))}\n")
    case .text:
      return .text(
        TextTable.of(headings, cells) + (note.isEmpty ? "" : note + "\n")
          + (next.map { "more: after=\($0)\n" } ?? ""))
    case .html:
      var page = HTMLPage(isClosed ? "Ended connections" : "Connections", refresh: 2)
      if !note.isEmpty { page.body += "<p class=\"bad\">\(note)</p>" }
      page.body += HTMLPage.table(headings, rows)
      if let next {
        let state = isClosed ? "&amp;state=closed" : ""
        page.body += "<p><a href=\"/connections?after=\(next)\(state)\">More</a></p>"
      }
      return .html(page)
    }
  }
}
#endif
