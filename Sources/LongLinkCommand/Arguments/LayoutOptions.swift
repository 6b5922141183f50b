import ArgumentParser
import Foundation
import LongLinkCore

/// Which protocol is meant, where it is not the native one.
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
    } catch let error as DecodingError {
      throw Output.usageError("\(file): \(LayoutOptions.reason(of: error))")
    }
  }

  /// What is wrong, beginning with the path of the key at fault.
  static func reason(of error: DecodingError) -> String {
    switch error {
    case .dataCorrupted(let context):
      // Whatever is no JSON at all has its reason, line and column inside.
      let inner = context.underlyingError.map { "\($0)" } ?? ""
      if context.underlyingError is FrameLayoutError { return inner }
      return inner.isEmpty ? context.debugDescription : "\(context.debugDescription) (\(inner))"
    case .keyNotFound(_, let context), .typeMismatch(_, let context),
      .valueNotFound(_, let context):
      return context.debugDescription
    @unknown default:
      return "\(error)"
    }
  }
}
