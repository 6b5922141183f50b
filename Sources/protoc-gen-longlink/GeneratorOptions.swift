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

  init(_ pairs: [(key: String, value: String)]) throws {
    for (key, value) in pairs {
      switch key {
      case "Runtime":
        guard let runtime = Runtime(rawValue: value) else {
          throw GeneratorError("Runtime is ProtobufC or SwiftProtobuf, not \(value)")
        }
        self.runtime = runtime
      case "Visibility":
        guard let visibility = Visibility(rawValue: value) else {
          throw GeneratorError("Visibility is public, package or internal, not \(value)")
        }
        self.visibility = visibility
      case "Messages": messages = try Folder(value)
      case "C": c = try Folder(value)
      case "Client": client = try Folder(value)
      case "Server": server = try Folder(value)
      case "Simulated": simulated = try Folder(value)
      case "Prefix": prefix = value
      case "Import":
        let parts = value.split(separator: ":", maxSplits: 1).map(String.init)
        guard parts.count == 2 else {
          throw GeneratorError("Import is FILE:MODULE, not \(value)")
        }
        imports[parts[0]] = parts[1]
      default:
        throw GeneratorError("there is no option \(key)")
      }
    }
    try check()
  }

  private func check() throws {
    guard messages != nil else {
      guard client == nil, server == nil, simulated == nil else {
        throw GeneratorError("Client, Server and Simulated need Messages=FOLDER")
      }
      return
    }
    if runtime == .protobufC, c == nil {
      throw GeneratorError("Messages needs C=FOLDER, the folder of a C target")
    }
    if c != nil, [messages, client, server, simulated].contains(where: { $0 == c }) {
      throw GeneratorError("C needs a folder of its own: a target is either Swift or C")
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

  init(_ value: String) throws {
    let halves = value.split(separator: ":", maxSplits: 1).map(String.init)
    let path = halves.first ?? ""
    let parts = path.split(separator: "/").filter { $0 != "." }
    guard let last = parts.last, !path.hasPrefix("/"), !parts.contains("..") else {
      throw GeneratorError("a folder stands below the output folder: \(path)")
    }
    self.path = parts.joined(separator: "/")
    module =
      halves.count == 2
      ? halves[1] : String(last.map { $0.isLetter || $0.isNumber ? $0 : "_" })
  }

  func file(_ name: String) -> String { "\(path)/\(name)" }
}
#endif
