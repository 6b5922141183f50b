// SPDX-License-Identifier: Apache-2.0

#if HTTP
import ArgumentParser
import LongLinkCommandSupport
import LongLinkHTTP
import LongLinkReaders
import LongLinkUploads

/// `longlink fetch`.
struct FetchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fetch",
    abstract: "Gets a URL, and prints the elements of a document as they come.",
    discussion: """
      Without further options the body goes to standard output as it is. With --xml each element \
      with that name is a line with its text; with --json each element of the array at the path \
      is a line with its bytes, where '[*]' is the array that is the document. A line break \
      within an element becomes a space, and control characters are escaped, as they are in a \
      body on a terminal. Each line is there as soon as its element has arrived.

      With --output the body goes to a file, which has its name when it is whole; a later call \
      goes on where this one was cut, if the server allows that.

      At most 5 redirects are followed. --user answers challenges of Digest and Basic, and is not \
      sent before. --form sends a form with POST, with files if there are any.

      Exit codes: 0 success, 64 wrong arguments, 3 could not connect, 4 deadline exceeded, 5 a \
      status that is not 2xx or an error element (its text on standard error), 6 corrupted, no \
      HTTP, no XML or JSON, or a head of over 64 KiB, 7 the connection or the document was cut, \
      1 any other failure.
      """)

  @Argument(help: "The URL: http or https.")
  var url: String

  @Option(parsing: .unconditional, help: "Write the body to this file.")
  var output: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Print the text of each XML element with this name.", valueName: "name"))
  var xml: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Print each element of the JSON array at this path, such as 'items[*]'.", valueName: "path"),
    transform: FetchCommand.shape)
  var json: JSONReader.Shape?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The XML element, or the member of a JSON object, that stands for an error.",
      valueName: "name"))
  var error: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Answer challenges with this.", valueName: "name:password"),
    transform: FetchCommand.credentials)
  var user: HTTPCredentials?

  @Option(
    name: .customLong("form"), parsing: .unconditionalSingleValue,
    help: ArgumentHelp(
      "A field of a form, or a file after '@'; may be repeated.",
      valueName: "name=value|name=@file"),
    transform: FetchField.init(parsing:))
  var fields: [FetchField] = []

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The time limit for all of it (default: none, but 30 for the head and between bytes).",
      valueName: "seconds"),
    transform: Values.time)
  var deadline: Duration?

  func validate() throws {
    guard [output != nil, xml != nil, json != nil].filter({ $0 }).count <= 1 else {
      throw ValidationError("Give one of --output, --xml and --json.")
    }
    guard error == nil || xml != nil || json != nil else {
      throw ValidationError("--error needs --xml or --json.")
    }
    guard xml != "" && error != "" && output != "" else {
      throw ValidationError("A name is empty.")
    }
  }

  func run() async throws {
    Output.logToStandardError()
    var request = HTTPRequest(.get, url)
    if !fields.isEmpty {
      request.method = .post
      let body: [UploadPart] = fields.map(\.part)
      do throws(UploadError) {
        _ = try await PreparedUpload(body)
      } catch {
        throw Output.usageError("\(error)")
      }
      request.body = .multipart(body)
    }
    request.timeout = deadline
    request.authentication = user.map { .challenged($0) }
    var configuration = HTTPConfiguration()
    if let deadline { configuration.idleTimeout = deadline }
    let service = try HTTPService(configuration)
    let failure = await fetch(request, from: service)
    await service.close()
    if let failure {
      Output.error(failure.text)
      throw ExitCode(failure.status)
    }
  }

  private static func shape(_ path: String) throws -> JSONReader.Shape {
    guard let shape = JSONReader.Shape(path: path) else {
      throw ValidationError(
        "'\(path)' is not a path: names, dots, '[\"a.b\"]', and '[*]', which is its end.")
    }
    return shape
  }

  private static func credentials(_ text: String) throws -> HTTPCredentials {
    guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else {
      throw ValidationError("--user needs a name, ':' and a password.")
    }
    return HTTPCredentials(
      user: String(text[..<colon]), password: String(text[text.index(after: colon)...]))
  }
}

/// The value of `--form`.
struct FetchField {
  let part: UploadPart

  init(parsing text: String) throws {
    guard let equals = text.firstIndex(of: "="), equals > text.startIndex else {
      throw ValidationError("'\(text)' is not a field: a name, '=' and a value, or '@' and a file.")
    }
    let name = String(text[..<equals])
    let value = text[text.index(after: equals)...]
    part =
      value.hasPrefix("@")
      ? .file(name, at: String(value.dropFirst())) : .field(name, String(value))
  }
}
#endif
