// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLink
import LongLinkCommandSupport
import LongLinkUploads

/// `longlink upload`.
struct UploadCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "upload",
    abstract: "Uploads files to a server that was started with --uploads.",
    discussion: """
      Prints the ID of the upload, once the server has all files on its disk and has compared \
      their SHA-256. The progress goes to standard error: a bar on a terminal, else a line per \
      second.

      A lost connection is retried for 60 seconds. With --resume a later call goes on with the \
      same upload: the file is written at the beginning and removed at the end. Without it, SIGINT \
      (Ctrl-C) removes the upload from the server.

      Exit codes: 0 the upload is finished, 64 wrong arguments, a file that cannot be read, or a \
      record of other files, 3 could not connect, 5 rejected, 6 corrupted or protocol violation, \
      7 connection lost for 60 seconds, 8 not secure (TLS), 9 not accepted by the server (its \
      credential or certificate), 1 a file has changed meanwhile, or any other failure.
      """)

  @Argument(help: "The files, in their order.")
  var files: [String]

  @Option(
    name: .customLong("field"), parsing: .unconditionalSingleValue,
    help: ArgumentHelp(
      "The value of a form's field; may be repeated.", valueName: "name=value"),
    transform: FormField.init(parsing:))
  var fields: [FormField] = []

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Keep a record in this file, and go on with the upload that it describes.",
      valueName: "file"))
  var resume: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The most bytes per second (default: no limit).", valueName: "bytes"),
    transform: Values.count)
  var rate: Int?

  @OptionGroup var server: ServerOptions
  @OptionGroup var identity: IdentityOptions
  @OptionGroup var http: HTTPOptions

  func run() async throws {
    Output.logToStandardError()
    let signals = TerminationSignals()
    let client = try server.makeClient(over: http, as: identity) { configuration in
      configuration.waitsForConnection = true
      // A server that comes back within the minute is found.
      configuration.reconnect.cap = .seconds(5)
    }
    let body: [UploadPart] =
      fields.map { .field($0.name, $0.value) } + files.map { .file("file", at: $0) }
    do throws(UploadError) {
      _ = try await PreparedUpload(body)
    } catch {
      throw Output.usageError("\(error)")
    }
    let (outcome, signal) = await signals.cancelling { await upload(body, through: client) }
    await client.close(within: .zero)
    if let signal { throw ExitCode.signal(signal) }
    switch outcome {
    case .success(let receipt): try Output.line(receipt.id)
    case .failure(let failure):
      Output.error(failure.text)
      throw ExitCode(failure.status)
    }
  }

  /// Why there is no receipt.
  private struct Failure: Error {
    let text: String
    let status: Int32
  }

  private func upload(
    _ body: [UploadPart], through client: LongLinkClient
  ) async -> Result<UploadReceipt, Failure> {
    do throws(LongLinkError) {
      try await client.connect()
      if http.isGiven { try await UploadCommand.probe(client) }
    } catch {
      return .failure(Failure(text: "\(error)", status: ExitStatus.of(error)))
    }
    let options = UploadOptions(
      bytesPerSecond: rate, record: resume)
    let upload = Uploader(client).start(body, options: options)
    return await withTaskCancellationHandler {
      var printer = UploadPrinter()
      for await progress in upload.progress() { printer.show(progress) }
      printer.finish()
      do throws(UploadError) {
        return .success(try await upload.receipt)
      } catch {
        return .failure(Failure(text: "\(error)", status: UploadCommand.status(of: error)))
      }
    } onCancel: {
      upload.cancel()
    }
  }

  /// Sees to it that a gateway answers, whatever it says, before anything is retried.
  private static func probe(_ client: LongLinkClient) async throws(LongLinkError) {
    do throws(LongLinkError) {
      // Status of no upload.
      _ = try await client.request(
        13, [], options: RequestOptions(waitsForConnection: false))
    } catch  where error.code == .rejected {
      return
    }
  }

  /// The exit code for an error.
  static func status(of error: UploadError) -> Int32 {
    switch error.code {
    case .otherRecord: ExitStatus.usage
    case .rejected, .tooLarge, .tooManyUploads, .noSpace, .takenOver, .forgotten:
      ExitStatus.rejected
    case .damaged: ExitStatus.damaged
    case .unreachable: ExitStatus.lost
    case .failed: error.link.map { ExitStatus.of($0) } ?? ExitStatus.failure
    default: ExitStatus.failure
    }
  }
}

/// The value of `--field`.
struct FormField: Decodable {
  let name: String
  let value: String

  init(parsing text: String) throws {
    guard let equals = text.firstIndex(of: "="), equals > text.startIndex else {
      throw ValidationError("'\(text)' is not a field: a name, '=' and a value.")
    }
    name = String(text[..<equals])
    value = String(text[text.index(after: equals)...])
  }
}
