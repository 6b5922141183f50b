// SPDX-License-Identifier: Apache-2.0

import Testing

/// How many types users may see.
extension TidyTests {
  /// The most public types that an import of each product shows, those of the modules that it
  /// exports included.
  private static let mostShown = [
    "LongLink": 71, "LongLinkCalls": 90, "LongLinkConfiguration": 2, "LongLinkDialects": 19,
    "LongLinkHTTP": 105, "LongLinkHTTPServer": 81, "LongLinkJSON": 42, "LongLinkOnce": 42,
    "LongLinkOnceSQLite": 42, "LongLinkProtobuf": 30, "LongLinkProtobufC": 51,
    "LongLinkReaders": 11, "LongLinkServer": 77, "LongLinkTLS": 73, "LongLinkTesting": 98,
    "LongLinkUploads": 84, "LongLinkUploadsServer": 81,
  ]

  /// The most public types of all modules together.
  private static let mostPublic = 275

  @Test func `no product shows more types than it did`() throws {
    let modules = try publicTypes()
    for (product, most) in Self.mostShown {
      var shown: Set<String> = []
      var open = [product]
      while let module = open.popLast() {
        if shown.insert(module).inserted { open += modules[module]?.exports ?? [] }
      }
      let count = shown.reduce(0) { $0 + (modules[$1]?.types.count ?? 0) }
      #expect(count > 0, "\(product) has types")
      #expect(
        count <= most,
        """
        import \(product) shows \(count) public types, more than \(most). Make `package` what no \
        user names or needs a member of, and read PublicSurface.md in LongLink.docc.
        """)
    }
    let all = modules.values.reduce(0) { $0 + $1.types.count }
    #expect(all <= Self.mostPublic, "all modules have \(all) public types")
  }

  /// The public types of each module, nested ones and type aliases included, and the modules that
  /// it exports. What is `@_spi` is not public.
  private func publicTypes() throws -> [String: (types: Set<String>, exports: [String])] {
    let kinds: Set<Substring> = [
      "class", "struct", "enum", "actor", "protocol", "typealias", "extension",
    ]
    // What makes these words names of arguments, or of what is imported.
    let others: Set<Substring> = ["import", "func", "init", "var", "let", "case"]
    var modules: [String: (types: Set<String>, exports: [String])] = [:]
    for source in try Self.sources("Sources") where source.target != "protoc-gen-longlink" {
      var outer: Substring = ""
      var attributes: Substring = ""
      for (_, line) in source.code {
        let words = line.split { !($0.isLetter || $0.isNumber || "@_.".contains($0)) }
        if words.starts(with: ["@_exported", "public", "import"]) {
          modules[source.target, default: ([], [])].exports += words.last.map { [String($0)] } ?? []
        } else if let kind = words.firstIndex(where: kinds.contains), kind + 1 < words.endIndex,
          !words[..<kind].contains(where: others.contains)
        {
          let isNested = line.first == " "
          let before = words[..<kind] + [attributes]
          if before.contains("public"), words[kind] != "extension",
            !before.contains(where: { $0.contains("@_spi") })
          {
            let name = isNested ? "\(outer).\(words[kind + 1])" : "\(words[kind + 1])"
            modules[source.target, default: ([], [])].types.insert(name)
          }
          if !isNested { outer = words[kind + 1] }
        }
        let text = line.drop { $0 == " " }
        attributes = text.hasPrefix("@") ? attributes + text : ""
      }
    }
    return modules
  }
}
