// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
import Foundation
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// The errors found, one per line.
struct Findings {
  private var lines: [String] = []
  private let protoPaths: [String]

  init(_ protoPaths: [String]) {
    self.protoPaths = protoPaths
  }

  var isEmpty: Bool { lines.isEmpty }
  /// Begins with a line feed, because protoc puts a prefix before the text.
  var text: String { "\n" + lines.joined(separator: "\n") }

  mutating func add(_ user: some Located, _ text: String) { add(user.location, text) }

  mutating func add(_ location: SourceLocation, _ text: String) {
    let line = "\(self.text(location)): error: \(text)"
    if !lines.contains(line) { lines.append(line) }
  }

  /// A location in the form that editors follow, with the folder of the file if it is known.
  func text(_ location: SourceLocation) -> String {
    let path =
      protoPaths.lazy.map { $0 == "." ? location.file : "\($0)/\(location.file)" }
      .first { FileManager.default.fileExists(atPath: $0) }
    guard let line = location.line, let column = location.column else {
      return path ?? location.file
    }
    return "\(path ?? location.file):\(line):\(column)"
  }
}

/// File, line and column, counted from 1.
struct SourceLocation {
  let file: String
  var line: Int?
  var column: Int?
}

/// A descriptor with a location in a .proto file.
protocol Located: ProvidesSourceCodeLocation, ProvidesLocationPath {}

extension Located {
  var location: SourceLocation {
    guard let span = sourceCodeInfoLocation?.span, span.count >= 2 else {
      return SourceLocation(file: file.name)
    }
    return SourceLocation(file: file.name, line: Int(span[0]) + 1, column: Int(span[1]) + 1)
  }
}

extension Descriptor: Located {}
extension EnumDescriptor: Located {}
extension EnumValueDescriptor: Located {}
extension FieldDescriptor: Located {}
extension MethodDescriptor: Located {}
extension ServiceDescriptor: Located {}
#endif
