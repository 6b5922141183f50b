// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Foundation
import LongLinkTestSupport
import Testing

/// `longlink fetch`, against Python's HTTP server.
@Suite(.timeLimit(.minutes(15)), .unless(PythonPeer.problem)) struct FetchTests {
  private func fetch(
    _ path: String, _ arguments: String...
  ) async throws -> Finished {
    let (server, port) = try await PythonPeer.startServices()
    let tool = try Tool(["fetch", "http://127.0.0.1:\(port)\(path)"] + arguments)
    let finished = await tool.finish()
    server.send(SIGKILL)
    return finished
  }

  @Test func `nodes appear one by one`() async throws {
    let (server, port) = try await PythonPeer.startServices()
    let tool = try Tool(["fetch", "http://127.0.0.1:\(port)/feed", "--xml", "node"])
    for number in 1...3 {
      try server.write(Array("\n".utf8))
      // The next one is not sent before this one is here.
      #expect(await tool.nextLine() == "\(number) x")
    }
    let end = await tool.finish()
    #expect(end.code == 0 && end.output.isEmpty && end.errors.isEmpty)
  }

  @Test func `an error behind the seventh node gives seven nodes and its text`() async throws {
    let (server, port) = try await PythonPeer.startServices()
    let tool = try Tool(
      ["fetch", "http://127.0.0.1:\(port)/failing", "--xml", "node", "--error", "error"])
    try server.write(Array("1\n2\n3\n4\n5\n6\n7\n".utf8))
    let end = await tool.finish()
    #expect(end.lines == (1...7).map { "\($0) x" })
    #expect(end.code == 5 && end.errors.contains("the database is down"), "\(end.errors)")
  }

  @Test(arguments: [["/hostile", "--json", "items[*]"], ["/hostile.xml", "--xml", "node"]])
  func `the text of an error is escaped and cut`(_ arguments: [String]) async throws {
    let (server, port) = try await PythonPeer.startServices()
    let url = "http://127.0.0.1:\(port)\(arguments[0])"
    let tool = try Tool(["fetch", url, "--error", "error"] + arguments.dropFirst())
    let end = await tool.finish()
    server.send(SIGKILL)
    #expect(end.code == 5 && end.output.isEmpty)
    #expect(end.errors.contains(#"no\nlonglink: ok\u{202E}xxx"#), "\(end.errors.prefix(300))")
    #expect(end.errors.split(separator: "\n").count == 1 && end.errors.utf8.count < 250)
  }

  /// What would control a terminal, as the server sends it.
  private static let controls = "a\u{1B}[31m\u{7}\u{9B}\u{7F}\u{202E}\u{2028}\tü\n"

  @Test func `a terminal gets escapes, and a pipe the bytes`() async throws {
    #expect(try await fetch("/controls").text == Self.controls)
    let (server, port) = try await PythonPeer.startServices()
    let shown = await onTerminal(["fetch", "http://127.0.0.1:\(port)/controls"])
    server.send(SIGKILL)
    #expect(
      shown == #"a\u{1B}[31m\u{07}\u{009B}\u{7F}\u{202E}\u{2028}"# + "\tü\n", "\(shown)")
  }

  @Test func `a terminal gets the escapes of a call`() async throws {
    let server = try await RunningServer()
    let hex = Self.controls.utf8.map { String(format: "%02x", $0) }.joined() + "c3ff"
    let shown = await onTerminal(["call", "1", "--port", server.port, "--hex", hex])
    #expect(
      shown == #"a\u{1B}[31m\u{07}\u{009B}\u{7F}\u{202E}\u{2028}"# + "\tü\n" + #"\xC3\xFF"#)
  }

  /// What a terminal gets of the command.
  private func onTerminal(_ arguments: [String]) async -> String {
    let script = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
    do {
      let python = try PythonPeer.program.path
      let tool = try Tool(arguments, launcher: [python, "-c", script])
      return await tool.finish().text.replacing("\r\n", with: "\n")
    } catch {
      return "\(error)"
    }
  }

  @Test func `lines have no controls, and those of JSON are JSON`() async throws {
    let items = try await fetch("/controls.json", "--json", "[*]")
    #expect(
      items.lines == [#""\u001b\u009b\u202e\u2028\\ü""#, "1"] && items.code == 0, "\(items.text)")
    let elements = try await fetch("/controls.xml", "--xml", "node")
    #expect(elements.lines == [#"\u{009B}\u{7F}\u{202E}\u{2028} ü\"#], "\(elements.text)")
  }

  @Test func `elements of JSON are their bytes`() async throws {
    let items = try await fetch("/items", "--json", "items[*]")
    #expect(items.lines == ["1", #"{"b": "x",  "c": 2}"#, #""s""#] && items.code == 0)
    let array = try await fetch("/array", "--json", "[*]")
    #expect(array.lines == ["1", #"{"error": "down"}"#, "3"] && array.code == 0)
    let failing = try await fetch("/array", "--json", "[*]", "--error", "error")
    #expect(failing.lines == ["1"] && failing.code == 5)
    #expect(failing.errors.contains("down"))
    let problem = try await fetch("/problem", "--json", "items[*]", "--error", "error")
    #expect(problem.lines.isEmpty && problem.code == 5)
    #expect(problem.errors.contains(#"{"why":"no"}"#), "\(problem.errors)")
  }

  @Test(arguments: [
    (["/text"], 0, "hello\n"), (["/redirect/5"], 0, "hello\n"), (["/redirect/6"], 5, ""),
    (["/503"], 5, ""), (["/404"], 5, ""), (["/head"], 6, ""), (["/cut"], 7, "abc"),
    (["/cut.json", "--json", "items[*]"], 7, "1\n"), (["/cut.xml", "--xml", "node"], 7, "1\n"),
    (["/broken.xml", "--xml", "node"], 6, "1\n"), (["/problem", "--json", "items[*]"], 6, ""),
    (["/silent", "--deadline", "0.3"], 4, ""), (["/text", "--json", "items"], 64, ""),
    (["/text", "--error", "x"], 64, ""), (["/text", "--xml", "a", "--json", "[*]"], 64, ""),
    (["/text", "--user", "nobody"], 64, ""), (["/text", "--form", "f=@/nowhere"], 64, ""),
    (["/text", "--deadline", "0"], 64, ""),
  ])
  func `the exit codes are those of call`(
    arguments: [String], code: Int, output: String
  ) async throws {
    let (server, port) = try await PythonPeer.startServices()
    let url = "http://127.0.0.1:\(port)\(arguments[0])"
    let end = try await Tool(["fetch", url] + arguments.dropFirst()).finish()
    server.send(SIGKILL)
    #expect(end.code == Int32(code), "\(end.errors)")
    #expect(end.text == output)
    #expect(end.errors.isEmpty == (code == 0))
  }

  @Test func `what cannot be reached or understood`() async throws {
    for (url, code) in [("http://127.0.0.1:1/", 3), ("ftp://a/", 64), ("a b", 64)] {
      let end = try await Tool.run("fetch", url)
      #expect(end.code == Int32(code), "\(end.errors)")
    }
    let bare = try await Tool.run("fetch", "127.0.0.1:1/json")
    #expect(bare.code == 64 && bare.errors.contains("\"127.0.0.1:1/json\""), "\(bare.errors)")
    #expect(bare.errors.contains("http:// or https://"), "\(bare.errors)")
    let refused = try await fetch("/503")
    #expect(refused.errors.contains("come back later"))
  }

  @Test func `a user answers challenges, and a form is sent`() async throws {
    let user = try await fetch("/digest", "--user", #"Mufasa "M":Circle of Life"#)
    #expect(user.text == "in 00000001" && user.code == 0, "\(user.errors)")
    let wrong = try await fetch("/digest", "--user", "x:y")
    #expect(wrong.code == 5)
    let file = NSTemporaryDirectory() + "longlink-fetch-\(UInt64.random(in: 0 ... .max)).txt"
    try Data("content".utf8).write(to: URL(filePath: file))
    defer { try? FileManager.default.removeItem(atPath: file) }
    let form = try await fetch("/form", "--form", "a=b=c", "--form", "f=@\(file)")
    let parts = try #require(
      try JSONSerialization.jsonObject(with: Data(form.output)) as? [[String: Any]])
    #expect(parts.map { $0["name"] as? String } == ["a", "f"])
    #expect(parts.map { $0["size"] as? Int } == [3, 7])
  }

  @Test func `a file appears when it is whole`() async throws {
    let path = NSTemporaryDirectory() + "longlink-fetch-\(UInt64.random(in: 0 ... .max))"
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(try await fetch("/cut", "--output", path).code == 7)
    #expect(!FileManager.default.fileExists(atPath: path))
    #expect(!FileManager.default.fileExists(atPath: path + ".part"))
    let end = try await fetch("/text", "--output", path)
    #expect(end.code == 0 && end.output.isEmpty)
    #expect(FileManager.default.contents(atPath: path) == Data("hello\n".utf8))
  }
}
#endif
