// SPDX-License-Identifier: Apache-2.0

import Foundation
import PackagePlugin

/// `swift package generate-longlink`: runs protoc with the plug-ins for the requested output.
@main
struct GenerateLongLink: CommandPlugin {
  func performCommand(context: PluginContext, arguments: [String]) async throws {
    guard !arguments.isEmpty, !arguments.contains("--help") else {
      print(Invocation.usage)
      return
    }
    let invocation = try Invocation(arguments, Folders(context.package))
    var command = ["protoc"] + protoPaths(invocation, context.package).map { "--proto_path=\($0)" }
    command += try longLink(invocation, context)
    if invocation.runtime == "SwiftProtobuf" { command += try swiftProtobuf(invocation, context) }
    try run(command + invocation.files)
  }

  /// The folders searched for imports. `longlink/options.proto` comes with LongLink.
  private func protoPaths(_ invocation: Invocation, _ package: Package) -> [String] {
    let own = ([package] + package.dependencies.map(\.package)).map {
      $0.directoryURL.appending(path: "Protocols")
    }
    return invocation.protoPaths
      + own.filter {
        FileManager.default.fileExists(atPath: $0.appending(path: "longlink/options.proto").path)
      }.map(\.path)
  }

  // MARK: Arguments of protoc

  private func longLink(_ invocation: Invocation, _ context: PluginContext) throws -> [String] {
    let plugin = try context.tool(named: "protoc-gen-longlink").url
    // A comma in a path would begin another option.
    let paths = invocation.protoPaths.filter { !$0.contains(",") }.map { "ProtoPath=\($0)" }
    return [
      "--plugin=protoc-gen-longlink=\(plugin.path)",
      "--longlink_out=\(context.package.directoryURL.path)",
    ] + (["FrontEnd=command"] + invocation.options + paths).map { "--longlink_opt=\($0)" }
  }

  /// The arguments for SwiftProtobuf's plug-in, which writes its messages.
  private func swiftProtobuf(_ invocation: Invocation, _ context: PluginContext) throws -> [String]
  {
    let plugin = try context.tool(named: "protoc-gen-swift").url
    let folder = context.package.directoryURL.appending(path: invocation.messages)
    var options = [
      "Visibility=\(invocation.visibility.capitalized)", "FileNaming=PathToUnderscores",
      "UseAccessLevelOnImports=true",
    ]
    if !invocation.imports.isEmpty {
      let modules = context.pluginWorkDirectoryURL.appending(path: "modules.txt")
      let text = invocation.imports.map { file, module in
        "mapping { module_name: \"\(module)\" proto_file_path: \"\(file)\" }\n"
      }
      try text.joined().write(to: modules, atomically: true, encoding: .utf8)
      options.append("ProtoPathModuleMappings=\(modules.path)")
    }
    return ["--plugin=protoc-gen-swift=\(plugin.path)", "--swift_out=\(folder.path)"]
      + options.map { "--swift_opt=\($0)" }
  }

  // MARK: Output of protoc

  private func run(_ command: [String]) throws {
    let process = Process()
    // The shell gives protoc a standard input. SwiftPM closes that of its plug-ins, the next file that
    // is opened gets its descriptor, and protoc mistakes it for a pipe of its own.
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = ["-c", "exec \"$0\" \"$@\" </dev/null"] + command
    let pipe = Pipe()
    process.standardError = pipe
    try process.run()
    let said = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    // The shell exits with 127 if there is no such program.
    guard process.terminationStatus != 127 else {
      throw UsageError("protoc is missing (Debian: protobuf-compiler, Homebrew: protobuf)")
    }
    // protoc puts the plug-in's option before its output.
    let lines = String(decoding: said, as: UTF8.self)
      .replacing(#/(?m)^--(longlink|swift)_out: /#, with: "").split(separator: "\n")
    let (located, others) = (lines.filter(isLocated), lines.filter { !isLocated($0) })
    for line in located { FileHandle.standardError.write(Data((line + "\n").utf8)) }
    if process.terminationStatus == 0 {
      for line in others { FileHandle.standardError.write(Data((line + "\n").utf8)) }
      return
    }
    throw UsageError(others.isEmpty ? "nothing was generated" : others.joined(separator: "\n"))
  }

  /// Whether a line begins with a location in a file.
  private func isLocated(_ line: Substring) -> Bool { line.contains(#/^[^:]+:\d+:\d+: /#) }
}

struct UsageError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
