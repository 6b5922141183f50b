// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

/// A call with its plan, and what is to be made of its outcome.
struct PreparedCall<Reply: Sendable>: Sendable {
  let plan: CallPlan
  private let call: Call<Reply>
  private let configuration: CallConfiguration

  /// Throws where the call cannot be made at all.
  init(_ call: Call<Reply>, _ configuration: CallConfiguration) throws(CallError) {
    self.call = call
    self.configuration = configuration
    do throws(LongLinkError) {
      plan = try CallPlan(call.type, call.body, configuration.policy(of: call), key: call.key)
    } catch {
      throw configuration.describe(error, of: call)
    }
  }

  /// The reply, or the error as the application knows it.
  func result(of outcome: Outcome) -> Result<Reply, CallError> {
    switch outcome {
    case .success(let body):
      do throws(BodyError) {
        return .success(try call.decode(body))
      } catch {
        return .failure(
          describe(
            LongLinkError(
              .decodingFailed, delivery: .answered, doing: .request(call.type),
              detail: "\(error)")))
      }
    case .failure(let error):
      return .failure(describe(error))
    }
  }

  /// A failure in the application's terms.
  func describe(_ error: LongLinkError) -> CallError {
    configuration.describe(error, of: call)
  }
}

extension CallCore {
  /// Makes a prepared call; an answer that cannot be decoded does not stay in the cache.
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
