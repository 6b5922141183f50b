// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

// What the link tells the recorder of its loop: everything that its core is told, in order, so that
// another core can be told the same. Without the trait `Operations` these functions are empty.

extension Link {
  #if Operations
  /// Calls a function with the recorder, unless the link has ended or is not recorded.
  @inline(__always)
  private func withRecorder(_ body: (Recorder) -> Void) {
    // The loop retains its recorder, and the link the loop.
    if isAlive, let recorder = unsafe recorder { unsafe recorder._withUnsafeGuaranteedRef(body) }
  }
  #endif

  /// Notes that the link begins, with its settings and its peer.
  func recordBeginning(_ settings: ConnectionSettings, at now: LinkInstant) {
    #if Operations
    guard unsafe recorder != nil else { return }
    let text = "\(peer.map { "\($0)" } ?? "")\n\(way ?? "")\n\(settings.name)"
    withRecorder {
      $0.note(
        .began, of: recordedAs, at: now,
        numbers: RecordedSettings.encode(settings, id: log.label?.number ?? UInt64(id)),
        bytes: Array(text.utf8))
    }
    #endif
  }

  /// Notes a call of the core without numbers.
  @inline(__always)
  func recorded(_ event: RecordedEvent, at now: @autoclosure () -> LinkInstant) {
    #if Operations
    withRecorder { $0.note(event, of: recordedAs, at: now()) }
    #endif
  }

  /// Notes a call of the core with one number.
  @inline(__always)
  func recorded(
    _ event: RecordedEvent, at now: @autoclosure () -> LinkInstant,
    _ a: @autoclosure () -> UInt64
  ) {
    #if Operations
    withRecorder { $0.note(event, of: recordedAs, at: now(), a()) }
    #endif
  }

  /// Notes a call of the core with two numbers.
  @inline(__always)
  func recorded(
    _ event: RecordedEvent, at now: @autoclosure () -> LinkInstant,
    _ a: @autoclosure () -> UInt64, _ b: @autoclosure () -> UInt64
  ) {
    #if Operations
    withRecorder { $0.note(event, of: recordedAs, at: now(), a(), b()) }
    #endif
  }

  /// Notes a call of the core with three numbers.
  @inline(__always)
  func recorded(
    _ event: RecordedEvent, at now: @autoclosure () -> LinkInstant,
    _ a: @autoclosure () -> UInt64, _ b: @autoclosure () -> UInt64,
    _ c: @autoclosure () -> UInt64
  ) {
    #if Operations
    withRecorder { $0.note(event, of: recordedAs, at: now(), a(), b(), c()) }
    #endif
  }

  /// Notes a call of the core with any numbers, and with texts, which are separated by a NUL.
  func recorded(
    _ event: RecordedEvent, at now: @autoclosure () -> LinkInstant,
    numbers: @autoclosure () -> [UInt64], bytes: @autoclosure () -> [UInt8] = []
  ) {
    #if Operations
    withRecorder {
      $0.note(event, of: recordedAs, at: now(), numbers: numbers(), bytes: bytes())
    }
    #endif
  }

  /// Notes a request of this side, which is about to be sent.
  @inline(__always)
  func recordedRequest(
    _ serial: UInt32, _ type: MessageType, _ metadata: MetadataBlock?, _ priority: UInt32,
    _ count: Int, _ stream: StreamTerms?, at now: LinkInstant
  ) {
    #if Operations
    withRecorder { recorder in
      let first = RecordedNumber.pair(serial, type.rawValue)
      let sizes = RecordedNumber.sizes(count, metadata: metadata?.count)
      if let stream {
        let flags: RecordedFlags = stream.sendsItems ? .sendsItems : []
        recorder.note(
          .streamRequest, of: recordedAs, at: now,
          numbers: [
            first, RecordedNumber.pair(priority, flags.rawValue), sizes,
            UInt64(stream.credit.map { $0 + 1 } ?? 0),
            UInt64(stream.largestWindow.map { $0 + 1 } ?? 0),
          ])
      } else {
        recorder.note(.request, of: recordedAs, at: now, first, UInt64(priority), sizes)
      }
    }
    #endif
  }

  /// Notes that the body of what was noted last could not be encoded.
  func recordedFailure() {
    #if Operations
    withRecorder { $0.noteFailure(of: recordedAs) }
    #endif
  }

  /// Notes a response with a code and bytes.
  func recordedResponse(
    _ id: InboundID, _ code: ResponseCode, _ isRefused: Bool, _ isInterrupting: Bool,
    _ ownCode: UInt32?, _ metadata: MetadataBlock?, _ count: Int
  ) {
    #if Operations
    withRecorder { recorder in
      let flags: RecordedFlags = [
        isRefused ? .isRefused : [], isInterrupting ? .isInterrupting : [],
        ownCode == nil ? [] : .hasOwnCode,
      ]
      recorder.note(
        .respondWith, of: recordedAs, at: loop.now,
        numbers: [
          id.recorded, RecordedNumber.sizes(count, metadata: metadata?.count),
          RecordedNumber.pair(code.rawValue, flags.rawValue), UInt64(ownCode ?? 0),
        ])
    }
    #endif
  }

  /// Notes that a message or an effect is about to be taken from the core.
  @inline(__always)
  func recordedTake() {
    #if Operations
    withRecorder { $0.took(of: recordedAs, at: loop.now) }
    #endif
  }

  /// Notes what the core has decided.
  func recorded(_ effect: Effect) {
    #if Operations
    withRecorder { recorder in
      recorder.note(
        .effect, of: recordedAs, at: loop.now,
        numbers: RecordedEffect.encode(effect, frames: core.counters.framesReceived))
      if case .close = effect { recorder.forget(recordedAs) }
    }
    #endif
  }

  /// Notes a read of the last bytes of the input, before the core is told.
  @inline(__always)
  func recordedInput(_ count: Int) {
    #if Operations
    withRecorder { recorder in
      unsafe core.inbox.input.withStorage { storage in
        // The bytes that were not taken end the storage.
        let input = unsafe UnsafeRawBufferPointer(rebasing: storage[core.inbox.input.position...])
        unsafe recorder.noteInput(
          count, in: input, of: recordedAs, at: loop.now, from: core.settings.role.peer,
          isParsed: core.isLive && core.settings.dialect == nil)
      }
    }
    #endif
  }

  /// Notes a write of the first bytes of a chunk, before the core is told.
  @inline(__always)
  func recordedOutput(_ count: Int, of chunk: Range<Int>) {
    #if Operations
    withRecorder { recorder in
      unsafe core.outbox.bytes.withStorage { storage in
        unsafe recorder.noteOutput(
          count, of: UnsafeRawBufferPointer(rebasing: storage[chunk]), of: recordedAs,
          at: loop.now, from: core.settings.role, isParsed: core.settings.dialect == nil)
      }
    }
    #endif
  }
}

extension InboundID {
  /// The request as a number of an event.
  @inline(__always)
  var recorded: UInt64 { RecordedNumber.pair(serial, number) }
}
