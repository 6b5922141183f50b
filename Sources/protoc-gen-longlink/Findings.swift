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

  mutating func add(_ user: some Located, _ text: String) { add(user.place, text) }

  mutating func add(_ place: Place, _ text: String) {
    let line = "\(self.text(place)): error: \(text)"
    if !lines.contains(line) { lines.append(line) }
  }

  /// A place as an editor finds it: with the folder that the file was found in, where it is known.
  func text(_ place: Place) -> String {
    let path =
      protoPaths.lazy.map { $0 == "." ? place.file : "\($0)/\(place.file)" }
      .first { FileManager.default.fileExists(atPath: $0) }
    guard let line = place.line, let column = place.column else { return path ?? place.file }
    return "\(path ?? place.file):\(line):\(column)"
  }
}

/// File, line and column, counted from 1.
struct Place {
  let file: String
  var line: Int?
  var column: Int?
}

/// What has a place in a .proto file.
protocol Located: ProvidesSourceCodeLocation, ProvidesLocationPath {}

extension Located {
  var place: Place {
    guard let span = sourceCodeInfoLocation?.span, span.count >= 2 else {
      return Place(file: file.name)
    }
    return Place(file: file.name, line: Int(span[0]) + 1, column: Int(span[1]) + 1)
  }
}

extension Descriptor: Located {}
extension EnumDescriptor: Located {}
extension EnumValueDescriptor: Located {}
extension FieldDescriptor: Located {}
extension MethodDescriptor: Located {}
extension ServiceDescriptor: Located {}
#endif
