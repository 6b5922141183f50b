// SPDX-License-Identifier: Apache-2.0

/// Something differs from what the demo says.
struct DemoFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
