// SPDX-License-Identifier: Apache-2.0

/// A statement of the demo does not hold.
struct DemoFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
