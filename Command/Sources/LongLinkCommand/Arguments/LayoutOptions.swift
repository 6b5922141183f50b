// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import LongLinkCommandSupport
import LongLinkCore
internal import LongLinkDialects

/// The protocol to use, if it is not the native one.
struct LayoutOptions: ParsableArguments {
  @Option(
    name: .customLong("layout"),
    help: ArgumentHelp(
      "A dialect in its JSON form (default: the native protocol).", valueName: "file"))
  var file: String?

  /// The dialect that the file describes; nil for the native protocol.
  func dialect() throws -> FrameDialect? {
    guard let file else { return nil }
    let data: Data
    do {
      data = try Data(contentsOf: URL(fileURLWithPath: file))
    } catch {
      throw Output.usageError("\(file) cannot be read: \(error.localizedDescription)")
    }
    do {
      return try JSONDecoder().decode(FrameDialect.self, from: data)
    } catch DecodingError.dataCorrupted(let context) {
      // A layout's error begins with the path of the key at fault. Any other is a JSON error.
      if let error = context.underlyingError as? FrameLayoutError {
        throw Output.usageError("\(file): \(error)")
      }
      throw Output.usageError("\(file)\(JSONFault(in: data).text)")
    }
  }
}
