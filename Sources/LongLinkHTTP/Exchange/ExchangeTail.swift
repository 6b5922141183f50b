// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport
internal import NIOCore
internal import Synchronization

/// The part of an exchange that lives on while the response's body is read: its place and its
/// progress.
///
/// The place becomes free when the exchange ends or this object is dropped.
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

  /// Ends the exchange, whose last response is complete.
  func end() { place.leave() }

  func received(_ count: Int) { meter.received(count) }

  func failure(_ code: LongLinkError.Code, _ detail: String) -> LongLinkError {
    purpose.failure(code, delivery: .sent, detail)
  }

  func failure(of error: any Error) -> LongLinkError {
    place.failure(purpose.failure(of: error, flight, past: .sent), of: error)
  }
}

/// One of the places for exchanges of a service. While it is taken, the service's connections live.
final class ExchangePlace: Sendable {
  private let core: Mutex<ServiceCore?>

  init(_ core: ServiceCore) { self.core = Mutex(core) }

  deinit { leave() }

  func leave() { core.withLock(of: self) { $0.take() }?.leave() }

  /// Returns the failure to report: `closed` if the end of the service has caused it.
  func failure(_ failure: LongLinkError, of error: any Error) -> LongLinkError {
    guard !(error is CancellationError), [.cancelled, .connectionLost].contains(failure.code),
      let core = core.withLock(of: self, { $0 }), !core.isOpen
    else { return failure }
    return failure.with(.closed)
  }
}

/// Counts the bytes of an exchange, and reports them to the application.
final class ExchangeMeter: Sendable {
  private struct State {
    var progress = HTTPProgress()
    /// The bytes of the current request's body that have left.
    var sending: UInt64 = 0
  }

  private let state = Mutex(State())
  private let tell: (@Sendable (HTTPProgress) -> Void)?

  init(_ tell: (@Sendable (HTTPProgress) -> Void)?) { self.tell = tell }

  /// Begins to count a body of `total` bytes, which is sent from its beginning.
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
    // Under the lock, so that an older number is never reported after a newer one.
    state.withLock(of: self) { state in
      body(&state)
      tell(state.progress)
    }
  }
}
#endif
