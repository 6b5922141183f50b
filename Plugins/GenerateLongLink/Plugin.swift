import Foundation
import PackagePlugin

/// `swift package generate-longlink`: runs protoc with the plug-in protoc-gen-longlink.
@main
struct GenerateLongLink: CommandPlugin {
  func performCommand(context: PluginContext, arguments: [String]) async throws {
    guard !arguments.isEmpty, !arguments.contains("--help") else {
      print(GenerateLongLink.usage)
      return
    }
    let tool = try context.tool(named: "protoc-gen-longlink").url
    let root = context.package.directoryURL
    let invocation = try Invocation(arguments)
    var command = ["protoc", "--plugin=protoc-gen-longlink=\(tool.path)"]
    command.append("--longlink_out=\(root.path)")
    command += invocation.options.map { "--longlink_opt=\($0)" }
    command += invocation.protoPaths.map { "--proto_path=\($0)" }
    // Where longlink/options.proto is.
    for package in [context.package] + context.package.dependencies.map(\.package) {
      let protocols = package.directoryURL.appending(path: "Protocols")
      let options = protocols.appending(path: "longlink/options.proto")
      if FileManager.default.fileExists(atPath: options.path) {
        command.append("--proto_path=\(protocols.path)")
      }
    }
    command += invocation.files
    try run(command, in: root)
  }

  private func run(_ command: [String], in folder: URL) throws {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = command
    process.currentDirectoryURL = folder
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      // protoc has said why, but for 127 of env.
      let reason =
        process.terminationStatus == 127
        ? "protoc is missing (Debian: protobuf-compiler, Homebrew: protobuf)" : "protoc failed"
      throw UsageError(reason)
    }
  }

  static let usage = """
    Generates Swift and C from .proto files, with the services, pushes and messages in them.

      swift package --allow-writing-to-package-directory generate-longlink \\
        --messages Sources/Chat Protos/chat.proto

    --messages FOLDER     where the messages go, and the message types
    --c FOLDER            where their C goes; default: beside the messages, with a C before its name
    --client FOLDER       where the clients go; default: with the messages
    --server FOLDER       where the servers' protocols go; default: with the messages
    --simulated FOLDER    where the simulated servers go; default: nowhere
    --no-client, --no-server
    --runtime NAME        ProtobufC, the default, or SwiftProtobuf, for messages of protoc-gen-swift
    --visibility LEVEL    public, the default, package or internal
    --prefix TEXT         what the names of messages begin with; default: option swift_prefix
    --import FILE:MODULE  the module of an imported file that is not generated here
    --proto-path FOLDER   where imports are looked for; default: the folders of the files

    Folders are those of the targets, relative to the package.
    """
}

struct UsageError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}

/// What the command line says.
struct Invocation {
  private(set) var options: [String] = []
  private(set) var protoPaths: [String] = []
  private(set) var files: [String] = []

  init(_ arguments: [String]) throws {
    var values: [String: String] = [:]
    var imports: [String] = []
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "--no-client", "--no-server":
        values[String(argument.dropFirst(5))] = ""
      case "--messages", "--c", "--client", "--server", "--simulated", "--runtime", "--visibility",
        "--prefix", "--import", "--proto-path":
        guard let value = rest.popFirst() else { throw UsageError("\(argument) needs a value") }
        switch argument {
        case "--import": imports.append(value)
        case "--proto-path": protoPaths.append(value)
        default: values[String(argument.dropFirst(2))] = value
        }
      default:
        guard argument.hasSuffix(".proto") else { throw UsageError("what is \(argument)?") }
        files.append(argument)
      }
    }
    guard !files.isEmpty else { throw UsageError("name at least one .proto file") }
    if protoPaths.isEmpty {
      for file in files {
        let folder = (file as NSString).deletingLastPathComponent
        let path = folder.isEmpty ? "." : folder
        if !protoPaths.contains(path) { protoPaths.append(path) }
      }
    }
    try complete(&values)
    for key in values.keys.sorted() {
      guard let value = values[key], !value.isEmpty else { continue }
      options.append("\(key == "c" ? "C" : key.capitalized)=\(value)")
    }
    options += imports.map { "Import=\($0)" }
  }

  private func complete(_ values: inout [String: String]) throws {
    guard let messages = values["messages"] else {
      guard values["c"] != nil else { throw UsageError("say --messages FOLDER") }
      return
    }
    let path = messages as NSString
    if values["c"] == nil, values["runtime"] != "SwiftProtobuf" {
      let name = "C" + path.lastPathComponent
      values["c"] = (path.deletingLastPathComponent as NSString).appendingPathComponent(name)
    }
    for part in ["client", "server"] where values[part] == nil { values[part] = messages }
  }
}
