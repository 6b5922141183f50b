// SPDX-License-Identifier: Apache-2.0

import Foundation
import PackagePlugin

/// The parsed command line.
struct Invocation {
  /// The options of protoc-gen-longlink.
  private(set) var options: [String] = []
  /// The folder of the messages.
  private(set) var messages = ""
  private(set) var runtime = "ProtobufC"
  private(set) var visibility = "public"
  /// The modules of imported files.
  private(set) var imports: [(file: String, module: String)] = []
  private(set) var protoPaths: [String] = []
  private(set) var files: [String] = []

  init(_ arguments: [String], _ folders: Folders) throws {
    var values = try Invocation.values(arguments)
    files = values.removeValue(forKey: "")!.map(folders.path)
    guard !files.isEmpty else { throw UsageError("at least one .proto file is required") }
    let paths = values.removeValue(forKey: "proto-path")?.map(folders.path)
    for path in paths ?? files.map({ ($0 as NSString).deletingLastPathComponent })
    where !protoPaths.contains(path) {
      protoPaths.append(path)
    }
    for value in values.removeValue(forKey: "import") ?? [] {
      let parts = value.split(separator: ":").map(String.init)
      guard parts.count == 2 else { throw UsageError("--import needs FILE:MODULE, not \(value)") }
      imports.append((parts[0], parts[1]))
    }
    var single: [String: String] = [:]
    for (name, all) in values {
      guard all.count == 1 else { throw UsageError("--\(name) is given more than once") }
      single[name] = all[0]
    }
    runtime = single["runtime"] ?? runtime
    visibility = single["visibility"] ?? visibility
    try choose(&single)
    for name in Invocation.folderOptions {
      guard let folder = single[name], !folder.isEmpty else { continue }
      single[name] = try folders.folder(folder, name)
    }
    messages = single["messages"]?.split(separator: ":").first.map(String.init) ?? ""
    options = single.sorted { $0.key < $1.key }.compactMap { name, value in
      value.isEmpty ? nil : "\(name == "c" ? "C" : name.capitalized)=\(value)"
    }
    options += imports.map { "Import=\($0.file):\($0.module)" }
  }

  /// Adds the defaults of omitted options.
  private func choose(_ values: inout [String: String]) throws {
    guard let messages = values["messages"] else {
      guard values["c"] != nil else { throw UsageError("--messages FOLDER is required") }
      return
    }
    if values["c"] == nil, runtime != "SwiftProtobuf" {
      let path = messages as NSString
      values["c"] = (path.deletingLastPathComponent as NSString)
        .appendingPathComponent("C" + path.lastPathComponent)
    }
    for part in ["client", "server"] where values[part] == nil { values[part] = messages }
  }

  // MARK: The command line

  private static let folderOptions = ["messages", "c", "client", "server", "simulated"]

  /// The values of each given option; those of the empty name are the files.
  private static func values(_ arguments: [String]) throws -> [String: [String]] {
    var extractor = ArgumentExtractor(arguments)
    var values: [String: [String]] = [:]
    for part in ["client", "server"] where extractor.extractFlag(named: "no-\(part)") > 0 {
      values[part] = [""]
    }
    let names = folderOptions + ["runtime", "visibility", "prefix", "import", "proto-path"]
    // Longest first, because the name of one option may begin with that of another.
    for name in names.sorted(by: { $0.count > $1.count }) {
      let found = extractor.extractOption(named: name)
      for value in found where value.isEmpty || value.hasPrefix("--") {
        throw UsageError("--\(name) needs a value")
      }
      if !found.isEmpty { values[name, default: []] += found }
    }
    values[""] = extractor.remainingArguments
    for argument in extractor.remainingArguments where !argument.hasSuffix(".proto") {
      guard argument.hasPrefix("-") else { throw UsageError("\(argument) is not a .proto file") }
      let isKnown = names.contains(String(argument.dropFirst(2)))
      throw UsageError(
        isKnown ? "\(argument) needs a value" : "unknown option \(argument); --help lists them")
    }
    return values
  }

  static let usage = """
    Generates Swift and C for the messages, services and pushes of .proto files.

      swift package --allow-writing-to-package-directory generate-longlink \\
        --messages Sources/Chat Protos/chat.proto

    --messages FOLDER     output folder of the messages and the message types; required
    --c FOLDER            of their C; default: beside --messages, with a C before its name
    --client FOLDER       of the clients; default: that of the messages
    --server FOLDER       of the servers' protocols; default: that of the messages
    --simulated FOLDER    of the simulated servers; default: none are generated
    --no-client           generates no clients
    --no-server           generates no servers' protocols
    --runtime NAME        ProtobufC, the default, or SwiftProtobuf, with protoc-gen-swift's messages
    --visibility LEVEL    public, the default, package or internal
    --prefix TEXT         prefix of the names of messages; default: option swift_prefix
    --import FILE:MODULE  the module of an imported file that is not generated here
    --proto-path FOLDER   where to look for imports; default: the folders of the files

    Each FOLDER is the folder of a target, or one inside it, relative to the package.
    """
}
