// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
/// The options passed to the plug-in.
struct GeneratorOptions {
  /// The library that encodes and decodes the messages.
  enum Runtime: String {
    case protobufC = "ProtobufC"
    case swiftProtobuf = "SwiftProtobuf"
  }

  enum Visibility: String {
    case `public`
    case package
    case `internal`
  }

  /// The tool that started the plug-in. Error texts spell options the way it does.
  enum FrontEnd: String {
    case protoc
    case command

    /// An option in the tool's spelling, up to its value: `Import=` or `--import `.
    func option(_ name: String) -> String {
      self == .protoc ? "\(name)=" : "--\(name.lowercased()) "
    }
  }

  var frontEnd = FrontEnd.protoc
  var runtime = Runtime.protobufC
  var visibility = Visibility.public
  /// The output folders of the parts.
  var messages: Folder?
  var c: Folder?
  var client: Folder?
  var server: Folder?
  var simulated: Folder?
  /// The prefix of the names of messages and enumerations, in place of `swift_prefix`.
  var prefix: String?
  /// The modules of files that are imported and not generated, by path.
  var imports: [String: String] = [:]
  /// The folders of the .proto files, for error texts.
  var protoPaths: [String] = []

  init(_ pairs: [(key: String, value: String)]) throws {
    for (key, value) in pairs where key == "FrontEnd" {
      guard let frontEnd = FrontEnd(rawValue: value) else {
        throw GeneratorError("FrontEnd is protoc or command, not \(value)")
      }
      self.frontEnd = frontEnd
    }
    for (key, value) in pairs where key != "FrontEnd" { try set(key, value) }
    try check()
  }

  private mutating func set(_ key: String, _ value: String) throws {
    let option = frontEnd.option(key) + value
    switch key {
    case "Runtime":
      guard let runtime = Runtime(rawValue: value) else {
        throw GeneratorError("\(option): choose ProtobufC or SwiftProtobuf")
      }
      self.runtime = runtime
    case "Visibility":
      guard let visibility = Visibility(rawValue: value) else {
        throw GeneratorError("\(option): choose public, package or internal")
      }
      self.visibility = visibility
    case "Messages": messages = try Folder(value, option)
    case "C": c = try Folder(value, option)
    case "Client": client = try Folder(value, option)
    case "Server": server = try Folder(value, option)
    case "Simulated": simulated = try Folder(value, option)
    case "Prefix": prefix = value
    case "Import":
      let parts = value.split(separator: ":", maxSplits: 1).map(String.init)
      guard parts.count == 2 else {
        throw GeneratorError("\(option): write FILE:MODULE")
      }
      imports[parts[0]] = parts[1]
    case "ProtoPath": protoPaths.append(value)
    default: throw GeneratorError("unknown option \(key)")
    }
  }

  private func check() throws {
    func option(_ name: String) -> String { "\(frontEnd.option(name))FOLDER" }
    guard messages != nil else {
      guard client == nil, server == nil, simulated == nil, c != nil else {
        throw GeneratorError("\(option("Messages")) is required")
      }
      return
    }
    if runtime == .protobufC, c == nil {
      throw GeneratorError("\(option("C")) is required: the folder of a C target")
    }
    if runtime == .swiftProtobuf, let prefix {
      throw GeneratorError(
        "\(frontEnd.option("Prefix"))\(prefix): SwiftProtobuf only supports option swift_prefix")
    }
    if c != nil, [messages, client, server, simulated].contains(where: { $0?.path == c?.path }) {
      throw GeneratorError("\(option("C")) needs a separate folder: a target is Swift or C")
    }
  }

  /// The access level before a declaration, with a space.
  var access: String { visibility == .internal ? "" : "\(visibility.rawValue) " }
}

/// A folder of one target's sources: `FOLDER:MODULE`, or a folder with the name of its module.
struct Folder: Equatable {
  /// The folder's path, relative to protoc's output folder.
  let path: String
  let module: String

  init(_ value: String, _ option: String) throws {
    let halves = value.split(separator: ":", maxSplits: 1).map(String.init)
    let path = halves.first ?? ""
    let parts = path.split(separator: "/").filter { $0 != "." }
    guard let last = parts.last, !path.hasPrefix("/"), !parts.contains("..") else {
      throw GeneratorError("\(option): the folder has to be below the output folder")
    }
    self.path = parts.joined(separator: "/")
    module =
      halves.count == 2
      ? halves[1] : String(last.map { $0.isLetter || $0.isNumber ? $0 : "_" })
  }

  func file(_ name: String) -> String { "\(path)/\(name)" }
}
#endif
