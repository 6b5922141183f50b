// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
import Foundation
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// What is wrong, line by line.
struct Findings {
  private var lines: [String] = []
  private let protoPaths: [String]

  init(_ protoPaths: [String]) {
    self.protoPaths = protoPaths
  }

  var isEmpty: Bool { lines.isEmpty }
  /// protoc puts its own words before the first line.
  var text: String { "\n" + lines.joined(separator: "\n") }

  mutating func add(_ user: some Located, _ text: String) { add(user.location, text) }

  mutating func add(_ location: SourceLocation, _ text: String) {
    let line = "\(self.text(location)): error: \(text)"
    if !lines.contains(line) { lines.append(line) }
  }

  /// A place as an editor finds it: with the folder that the file was found in, where it is known.
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

/// What has a place in a .proto file.
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
