// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport
internal import NIOCore
internal import Synchronization

/// What an exchange needs from its response's head on: its place and its progress.
///
/// The place is free when it ends or is dropped.
final class ExchangeTail: Sendable {
  let flight: HTTPFlight
  private let purpose: ExchangePurpose
  private let place: ExchangePlace
  private let meter: ExchangeMeter

  init(
    _ purpose: ExchangePurpose, _ flight: HTTPFlight, _ place: ExchangePlace,
    _ meter: ExchangeMeter
  ) {
    self.purpose = purpose
    self.flight = flight
    self.place = place
    self.meter = meter
  }

  /// Ends the exchange with its last response.
  func end() { place.leave() }

  func received(_ count: Int) { meter.received(count) }

  func failure(_ code: LongLinkError.Code, _ detail: String) -> LongLinkError {
    purpose.failure(code, delivery: .sent, detail)
  }

  func failure(of error: any Error) -> LongLinkError {
    place.failure(purpose.failure(of: error, flight, past: .sent), of: error)
  }
}

/// A place among the exchanges of a service. The service's connections live at least as long.
final class ExchangePlace: Sendable {
  private let core: Mutex<ServiceCore?>

  init(_ core: ServiceCore) { self.core = Mutex(core) }

  deinit { leave() }

  func leave() { core.withLock(of: self) { $0.take() }?.leave() }

  /// A failure as it is told: what the end of the service has broken off is `closed`.
  func failure(_ failure: LongLinkError, of error: any Error) -> LongLinkError {
    guard !(error is CancellationError), [.cancelled, .connectionLost].contains(failure.code),
      let core = core.withLock(of: self, { $0 }), !core.isOpen
    else { return failure }
    return failure.with(.closed)
  }
}

/// Counts the bytes of an exchange, and tells the application.
final class ExchangeMeter: Sendable {
  private struct State {
    var progress = HTTPProgress()
    /// What has left of the body that is being sent.
    var sending: UInt64 = 0
  }

  private let state = Mutex(State())
  private let tell: (@Sendable (HTTPProgress) -> Void)?

  init(_ tell: (@Sendable (HTTPProgress) -> Void)?) { self.tell = tell }

  /// Begins to count a body that is sent from its beginning.
  func begin(total: UInt64?) {
    state.withLock(of: self) { state in
      state.sending = 0
      state.progress.sentTotal = total ?? state.progress.sentTotal
    }
  }

  func sent(_ count: Int) {
    change { state in
      state.sending += UInt64(count)
      state.progress.sent = max(state.progress.sent, state.sending)
    }
  }

  func expect(_ total: UInt64?) {
    state.withLock(of: self) { $0.progress.receivedTotal = total }
  }

  func received(_ count: Int) {
    change { $0.progress.received += UInt64(count) }
  }

  private func change(_ body: (inout State) -> Void) {
    guard let tell else { return }
    // Under the lock, so that no older number comes behind a newer one.
    state.withLock(of: self) { state in
      body(&state)
      tell(state.progress)
    }
  }
}
#endif
