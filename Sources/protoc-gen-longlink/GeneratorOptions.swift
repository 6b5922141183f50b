// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
/// What the caller of the plug-in asked for.
struct GeneratorOptions {
  /// What encodes and decodes the messages.
  enum Runtime: String {
    case protobufC = "ProtobufC"
    case swiftProtobuf = "SwiftProtobuf"
  }

  enum Visibility: String {
    case `public`
    case package
    case `internal`
  }

  /// What the plug-in was started by, whose words it uses.
  enum FrontEnd: String {
    case protoc
    case command

    /// An option as it is written there, up to its value: `Import=` or `--import `.
    func option(_ name: String) -> String {
      self == .protoc ? "\(name)=" : "--\(name.lowercased()) "
    }
  }

  var frontEnd = FrontEnd.protoc
  var runtime = Runtime.protobufC
  var visibility = Visibility.public
  /// The folders that the parts go to.
  var messages: Folder?
  var c: Folder?
  var client: Folder?
  var server: Folder?
  var simulated: Folder?
  /// What the names of messages and enumerations begin with, in place of `swift_prefix`.
  var prefix: String?
  /// The modules of files that are imported and not generated, by path.
  var imports: [String: String] = [:]
  /// Where the .proto files are, for messages that name them.
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
        "\(frontEnd.option("Prefix"))\(prefix): SwiftProtobuf heeds option swift_prefix alone")
    }
    if c != nil, [messages, client, server, simulated].contains(where: { $0?.path == c?.path }) {
      throw GeneratorError("\(option("C")) needs a folder of its own: a target is Swift or C")
    }
  }

  /// What declarations begin with: the access level and a space.
  var access: String { visibility == .internal ? "" : "\(visibility.rawValue) " }
}

/// A folder of one target's sources: `FOLDER:MODULE`, or a folder that is called like its module.
struct Folder: Equatable {
  /// Where it is, below what protoc was told.
  let path: String
  let module: String

  init(_ value: String, _ option: String) throws {
    let halves = value.split(separator: ":", maxSplits: 1).map(String.init)
    let path = halves.first ?? ""
    let parts = path.split(separator: "/").filter { $0 != "." }
    guard let last = parts.last, !path.hasPrefix("/"), !parts.contains("..") else {
      throw GeneratorError("\(option): a folder below the output folder is needed")
    }
    self.path = parts.joined(separator: "/")
    module =
      halves.count == 2
      ? halves[1] : String(last.map { $0.isLetter || $0.isNumber ? $0 : "_" })
  }

  func file(_ name: String) -> String { "\(path)/\(name)" }
}
#endif
