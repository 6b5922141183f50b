// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// What no compiler and no formatter sees.
@Suite struct TidyTests {
  struct Source: Sendable {
    let path: String
    let data: Data
    let lines: [Substring]

    /// Whether any of the words stands anywhere; cheaper than to look line by line.
    func mentions(_ words: [String]) -> Bool {
      words.contains { data.range(of: Data($0.utf8)) != nil }
    }

    /// The lines without their comments.
    var code: [(number: Int, text: Substring)] {
      lines.enumerated().map { index, line in
        let isComment = line.drop { $0 == " " }.hasPrefix("//")
        return (index + 1, isComment ? "" : line)
      }
    }

    /// The name of the folder below `Sources` or `Tests`.
    var target: String {
      let folders = path.split(separator: "/").map(String.init)
      return folders.drop { $0 != "Sources" && $0 != "Tests" }.dropFirst().first ?? ""
    }
  }

  private static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// The files below a folder of the package, by path. The package below `Tests` is one of its own.
  static func sources(_ folder: String, _ extensions: Set<String> = ["swift"]) throws -> [Source] {
    let start = root.appending(path: folder).resolvingSymlinksInPath()
    // What is built beside a package lies in hidden folders.
    guard
      let walk = FileManager.default.enumerator(
        at: start, includingPropertiesForKeys: nil, options: .skipsHiddenFiles)
    else { return [] }
    var sources: [Source] = []
    for case let file as URL in walk where extensions.contains(file.pathExtension) {
      let path = folder + file.resolvingSymlinksInPath().path.dropFirst(start.path.count)
      if folder == "Tests", path.hasPrefix("Tests/Generator/") { continue }
      sources.append(try source(path))
    }
    return sources.sorted { $0.path < $1.path }
  }

  /// One file of the package.
  static func source(_ path: String) throws -> Source {
    let data = try Data(contentsOf: root.appending(path: path))
    let lines = String(decoding: data, as: UTF8.self)
      .split(separator: "\n", omittingEmptySubsequences: false)
    return Source(path: path, data: data, lines: lines)
  }

  private static let executables: Set<String> = ["protoc-gen-longlink"]

  /// Everything that is neither an example nor a measurement.
  private static func ownSources() throws -> [Source] {
    try ["Sources", "Tests", "Command/Sources", "Command/Tests"].flatMap { try sources($0) }
  }

  private func find(
    _ words: [String], in sources: [Source], unless isAllowed: (Source) -> Bool = { _ in false }
  ) -> [String] {
    sources.filter { !isAllowed($0) && $0.mentions(words) }.flatMap { source in
      source.code.filter { line in words.contains { line.text.contains($0) } }
        .map { "\(source.path):\($0.number): \($0.text)" }
    }
  }

  @Test func `the sources are found`() throws {
    #expect(try Self.sources("Sources").count > 60)
    #expect(try Self.sources("Sources/LongLinkCore").count > 20)
  }

  @Test func `the core has no clock, no random numbers and no tasks`() throws {
    let words = [
      ".now()", "Clock.now", "Date(", ".random", "SystemRandomNumberGenerator", "Task.sleep",
      "Task {", "Task.detached", "await ", "import Foundation", "import Glibc", "import Dispatch",
      "import Darwin", "print(",
    ]
    #expect(find(words, in: try Self.sources("Sources/LongLinkCore")) == [])
  }

  @Test func `only a link touches its core, settles itself, and asks what comes next`() throws {
    // Put together here, so that this file does not find itself; `farLink` is meant as well.
    let inner = ["core", "drain()", "arm()", "writeAtEndOfTurn()", "awaitEndOfTurn()"]
      .map { "ink" + "." + $0 }
    let found = find(inner, in: try Self.sources("Sources") + Self.sources("Tests")) {
      // What a link holds in memory is measured there.
      $0.path.hasSuffix("/Station.swift")
    }
    #expect(found == [])
    // A replay is no driver, though it does what one has done.
    let drivers = try Self.sources("Sources").filter {
      $0.target != "LongLinkCore" && !$0.path.hasSuffix("/ReplayedConnection.swift")
    }
    #expect(find([".nextMessage()"], in: drivers).count == 1)
  }

  @Test func `only what writes JSON, or reads URLs, imports Foundation`() throws {
    let allowed = [
      "Sources/LongLinkUploadsServer/Store/FormFields.swift",
      // URLs, base64 and dates; with HTTP, whose client has Foundation anyway.
      "Sources/LongLinkHTTP/Request/HTTPAddress.swift",
      "Sources/LongLinkHTTP/Authentication/HTTPCredentials.swift",
      "Sources/LongLinkHTTP/Service/HTTPCookies.swift",
      "Sources/LongLinkHTTP/Cache/HTTPDate.swift",
      // JSON.
      "Sources/LongLinkOps/Pages/Coding.swift",
    ]
    let found = find(["import Foundation"], in: try Self.sources("Sources")) {
      // GRDB, which has Foundation, takes bytes as its `Data`.
      Self.executables.contains($0.target) || $0.target == "LongLinkJSON"
        || $0.target == "LongLinkOnceSQLite" || allowed.contains($0.path)
    }
    #expect(found == [])
  }

  /// How often each file of the sources says what the compiler is not to check.
  private static let unchecked: [(word: String, files: [String: Int])] = [
    (
      "@unchecked Sendable",
      [
        "LongLinkCore/Connection/SerialTable.swift": 1,
        // Behind what a snapshot has, the loop alone writes.
        "LongLinkCore/Recording/RecorderSegment.swift": 1,
        // Its variables are used on the loop alone.
        "LongLinkDriver/Observing/ExchangeRecord.swift": 1,
        "LongLinkDriver/Responding/HandlerQueue.swift": 2,
        "LongLinkDriver/Responding/RunningHandler.swift": 1,
        // Memory of libcrypto, which one thread uses at a time.
        "LongLinkOnce/OnceHasher.swift": 1,
        // Memory of OpenSSL, which counts references and locks where threads share it.
        "LongLinkTLS/Engine/TLSContext.swift": 2,
        "LongLinkTransport/Loop/EventLoop.swift": 1,
        "LongLinkTransport/Loop/EventLoopClock.swift": 1,
        "LongLinkTransport/Loop/LoopBound.swift": 1,
        // A value that cannot be copied, with a pointer that nobody else has.
        "LongLinkUploadMessages/SHA256Digest.swift": 1,
      ]
    ),
    (
      "nonisolated(unsafe)",
      [
        "LongLinkDriver/Requests/RequestPort.swift": 5,
        "LongLinkProtobufC/MessageDescription.swift": 1,
        "LongLinkProtobufC/ProtobufCLayout.swift": 1,
      ]
    ),
    (
      "unowned(unsafe)",
      [
        "LongLinkTransport/Kernel/KernelDriver.swift": 1
      ]
    ),
    (
      "@exclusivity(unchecked)",
      [
        "LongLink/Client/ClientCore.swift": 2,
        "LongLinkDriver/Link/Link.swift": 10,
        "LongLinkDriver/Requests/Requests.swift": 11,
        "LongLinkDriver/Responding/Responder.swift": 1,
        "LongLinkCore/Recording/Recorder.swift": 5,
        "LongLinkDriver/Streams/ItemChannel.swift": 4,
        "LongLinkTransport/Kernel/KernelDriver.swift": 1,
        "LongLinkTransport/Loop/EventLoop.swift": 6,
      ]
    ),
  ]

  @Test func `the compiler checks all but what is listed`() throws {
    let sources = try ["Sources", "Command/Sources"].flatMap { try Self.sources($0) }
    for (word, allowed) in Self.unchecked {
      var found: [String: Int] = [:]
      for source in sources where source.mentions([word]) {
        let path = source.path.split(separator: "/").drop { $0 != "Sources" }.dropFirst()
        let lines = source.code.filter { $0.text.contains(word) }
        if !lines.isEmpty { found[path.joined(separator: "/")] = lines.count }
      }
      #expect(found == allowed, "\(word)")
    }
  }

  @Test func `files are short and lines too`() throws {
    for source in try Self.ownSources() {
      // Generated code is as long as its .proto file makes it, and so are the names in it.
      if source.path.hasSuffix(".longlink.swift") { continue }
      #expect(source.lines.count <= 401, "\(source.path) has \(source.lines.count) lines")
      let long = source.lines.enumerated().filter {
        $0.element.utf8.count > 100 && $0.element.count > 100
      }
      #expect(long.isEmpty, "\(source.path):\((long.first?.offset ?? 0) + 1) is too long")
    }
  }

  @Test func `each file names its licence`() throws {
    let sources = try Self.ownSources() + Self.sources("Sources", ["c", "h"])
    for source in sources {
      let isGenerated = source.lines.prefix(8).contains { line in
        line.contains("DO NOT EDIT") || line.hasPrefix("// Generated by")
      }
      let isNamed = source.lines[0] == "// SPDX-License-Identifier: Apache-2.0"
      #expect(isNamed != isGenerated, "\(source.path)")
    }
  }

  @Test func `functions are short`() throws {
    // What is generated is as long as its .proto file.
    for source in try Self.ownSources() where !source.path.hasSuffix(".longlink.swift") {
      for (line, count) in functions(in: source.lines) {
        #expect(count <= 60, "\(source.path):\(line): \(count) lines")
      }
    }
  }

  /// Where each function begins, and its lines: the formatter puts its last brace below its first
  /// word.
  private func functions(in lines: [Substring]) -> [(line: Int, count: Int)] {
    lines.indices.compactMap { start in
      let line = lines[start]
      guard line.hasSuffix("{") || line.hasSuffix("(") || line.hasSuffix(")"),
        isFunction(line.drop { $0 == " " })
      else { return nil }
      let indent = line.prefix { $0 == " " }
      for index in (start + 1)..<lines.endIndex where !lines[index].isEmpty {
        guard lines[index].hasPrefix(indent) else { return nil }
        let first = lines[index].dropFirst(indent.count).first ?? " "
        if first == " " { continue }
        if first == "}" { return (start + 1, index - start + 1) }
        // What goes on with a declaration of several lines.
        guard ")-{wta".contains(first) else { return nil }
      }
      return nil
    }
  }

  private func isFunction(_ line: Substring) -> Bool {
    let keywords: Set<Substring> = ["func", "init", "deinit", "subscript"]
    for word in line.split(whereSeparator: { !($0.isLetter || "@_".contains($0)) }).prefix(8) {
      if keywords.contains(word) { return true }
      if ["let", "var", "return", "case", "if", "guard", "for", "self", "super"].contains(word) {
        return false
      }
    }
    return false
  }

  @Test func `tests are skipped only if the machine lacks something`() throws {
    // Put together here, so that this file does not find itself. `.unless` fails in CI.
    let words = [".enabled" + "(", ".disabled" + "(", "Test" + ".cancel("]
    let folders = [
      "Tests", "Tests/Generator/Tests", "Command/Tests", "Benchmarks/Tests", "Examples/Chat/Tests",
      "Examples/Payments/Tests",
    ]
    let found = find(words, in: try folders.flatMap { try Self.sources($0) }) {
      $0.target == "LongLinkTestSupport"
    }
    #expect(found == [])
  }

  @Test func `no note of unfinished work is left`() throws {
    // Put together here, so that this file does not find itself.
    let words = ["TO" + "DO", "FIX" + "ME", "XX" + "X:", "HA" + "CK"]
    for source in try Self.ownSources() where source.mentions(words) {
      let found = source.lines.filter { line in words.contains { line.contains($0) } }
      #expect(found.isEmpty, "\(source.path): \(found)")
    }
  }

  @Test func `no file names a folder of one machine`() throws {
    let words = ["/ho" + "me/", "/ro" + "ot/", "/Us" + "ers/", "/wo" + "rk/"]
    let extensions: Set<String> = ["swift", "c", "h", "md", "proto", "py", "sh", "txt"]
    for folder in ["Sources", "Tests", "Command/Sources", "Command/Tests", "Protocols", "Scripts"] {
      for source in try Self.sources(folder, extensions) where source.mentions(words) {
        let found = source.lines.filter { line in words.contains { line.contains($0) } }
        #expect(found.isEmpty, "\(source.path): \(found)")
      }
    }
  }

  @Test func `every public symbol is documented`() throws {
    let sources = try Self.sources("Sources").filter { !Self.executables.contains($0.target) }
    for source in sources {
      for (index, line) in source.lines.enumerated() where isPublicDeclaration(line) {
        #expect(
          isDocumented(source.lines, before: index), "\(source.path):\(index + 1): \(line)")
      }
    }
  }

  private func isPublicDeclaration(_ line: Substring) -> Bool {
    guard line.utf8.starts(with: "public ".utf8) || line.hasPrefix(" ") || line.hasPrefix("@")
    else {
      return false
    }
    let words = line.split(separator: " ").map(String.init)
    guard let place = words.firstIndex(of: "public") else { return false }
    // Attributes and `nonisolated` may stand before it; a comment may not.
    guard words[..<place].allSatisfy({ $0.hasPrefix("@") || $0 == "nonisolated" }) else {
      return false
    }
    let rest = words[(place + 1)...]
    return rest.first != "import" && rest.first != "extension" && !rest.isEmpty
  }

  private func isDocumented(_ lines: [Substring], before index: Int) -> Bool {
    var index = index - 1
    while index >= 0 {
      let line = lines[index].drop { $0 == " " }
      if line.hasPrefix("///") { return true }
      guard line.hasPrefix("@") || line.hasPrefix("#if") || line.hasPrefix("#else") else {
        return false
      }
      index -= 1
    }
    return false
  }
}
