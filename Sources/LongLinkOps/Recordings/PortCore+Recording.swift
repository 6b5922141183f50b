// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore
internal import LongLinkServer
internal import LongLinkTransport
internal import NIOCore
internal import NIOHTTP1

/// What the server's loops have recorded, as a download or as a file.
extension PortCore {
  private struct Written: Encodable {
    let file: String
    let bytes: Int
    /// The loops that did not answer in time, so that theirs is not there.
    var incomplete: [Int]?
  }

  func recording(_ request: PortRequest, _ reply: @escaping (PortAnswer) -> Void) {
    guard server.configuration.recorderBytes > 0 else {
      return reply(.problem(.notFound, "nothing is recorded: recorderBytes is 0", as: request.form))
    }
    switch request.method {
    case .GET, .HEAD: streamRecording(request.form, reply)
    case .POST: writeRecording(reply)
    default: reply(.notAllowed(request, "GET, HEAD, POST"))
    }
  }

  private func streamRecording(
    _ form: PortRequest.Form, _ reply: @escaping (PortAnswer) -> Void
  ) {
    snapshots { snapshots, incomplete in
      guard let snapshots else { return reply(Self.noLoop(form)) }
      var writer = RecordingWriter(snapshots, names: self.watch.methodNames, links: nil)
      var answer = PortAnswer("application/x-pcapng", streamingBytes: { writer.next() })
      answer.headers.append(("Content-Disposition", "attachment; filename=\"longlink.pcapng\""))
      if !incomplete.isEmpty {
        let loops = incomplete.map { "\($0)" }.joined(separator: ", ")
        answer.headers.append(("X-LongLink-Incomplete", loops))
      }
      reply(answer)
    }
  }

  private func writeRecording(_ reply: @escaping (PortAnswer) -> Void) {
    guard let files = watch.recordings else {
      return reply(
        .problem(.conflict, "there is no directory for files: set recordingsDirectory", as: .json))
    }
    guard files.beginsForOperator() else { return reply(Self.busy) }
    snapshots { snapshots, incomplete in
      guard let snapshots else {
        files.giveUp()
        return reply(Self.noLoop(.json))
      }
      let bound = NIOLoopBound(reply, eventLoop: self.thread.loop)
      files.write(
        snapshots, names: self.watch.methodNames, RecordingGate.operatorCause
      ) { [thread = self.thread] outcome in
        thread.loop.execute { bound.value(Self.answer(outcome, incomplete)) }
      }
    }
  }

  private static func answer(_ outcome: RecordingFiles.Outcome, _ incomplete: [Int]) -> PortAnswer {
    switch outcome {
    case .success(let entry):
      return .json(
        Written(
          file: entry.name, bytes: entry.bytes, incomplete: incomplete.isEmpty ? nil : incomplete),
        .created)
    case .failure(let error):
      if error.errno == FileError.inUse { return busy }
      return .problem(
        error.isNoSpace ? .insufficientStorage : .internalServerError,
        "the recording could not be written: \(error)", as: .json)
    }
  }

  private static var busy: PortAnswer {
    var answer = PortAnswer.problem(
      .tooManyRequests, "another recording is being written", as: .json)
    answer.headers.append(("Retry-After", "1"))
    return answer
  }

  private static func noLoop(_ form: PortRequest.Form) -> PortAnswer {
    .problem(.serviceUnavailable, "no loop answered within a second", as: form)
  }

  /// Asks all loops for what they have recorded. Nil if no loop has answered.
  private func snapshots(
    then: @escaping ([RecorderSnapshot]?, _ incomplete: [Int]) -> Void
  ) {
    askLoops { visit in
      visit.recorded.map { [$0] } ?? []
    } then: { answers in
      let known = answers.compactMap { $0 }
      then(
        known.isEmpty && !answers.isEmpty ? nil : known.flatMap { $0 },
        answers.indices.filter { answers[$0] == nil })
    }
  }
}
#endif
