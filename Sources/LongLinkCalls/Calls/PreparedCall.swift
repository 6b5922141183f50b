// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

/// A call with its plan, and the conversion of its outcome.
struct PreparedCall<Reply: Sendable>: Sendable {
  let plan: CallPlan
  private let call: Call<Reply>
  private let configuration: CallConfiguration

  /// Throws if the call needs a key and its body cannot be encoded.
  init(_ call: Call<Reply>, _ configuration: CallConfiguration) throws(CallError) {
    self.call = call
    self.configuration = configuration
    do throws(LongLinkError) {
      plan = try CallPlan(
        call.type, of: call.method, call.body, configuration.policy(of: call), key: call.key,
        carrier: call.carrier)
    } catch {
      throw configuration.describe(error, of: call)
    }
  }

  /// Returns the decoded reply, or the call's error.
  func result(of outcome: Outcome) -> Result<Reply, CallError> {
    switch outcome {
    case .success(let body):
      do throws(BodyError) {
        return .success(try call.decode(body))
      } catch {
        return .failure(
          describe(
            LongLinkError(
              .decodingFailed, delivery: .answered, doing: call.operation,
              detail: "\(error)")))
      }
    case .failure(let error):
      return .failure(describe(error))
    }
  }

  /// Makes the call's error.
  func describe(_ error: LongLinkError) -> CallError {
    configuration.describe(error, of: call)
  }
}

extension CallCore {
  /// Makes a prepared call. A response that does not decode is removed from the cache.
  func begin<Reply>(
    _ call: PreparedCall<Reply>, _ completion: @escaping (Result<Reply, CallError>) -> Void
  ) -> UInt64? {
    begin(call.plan) { [unowned self] outcome in
      let result = call.result(of: outcome)
      if case .failure(let error) = result, error.code == .decodingFailed, let key = call.plan.key {
        invalidate(key)
      }
      completion(result)
    }
  }
}
