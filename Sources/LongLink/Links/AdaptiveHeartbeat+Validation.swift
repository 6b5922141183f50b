// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

extension AdaptiveHeartbeat {
  func validate(within heartbeat: Heartbeat) throws(LongLinkError) {
    let field = "adaptHeartbeat"
    if shortest < .milliseconds(200) || shortest > heartbeat.interval {
      throw .configuration(
        "\(field).shortest", "\(shortest) is not between 200 ms and \(heartbeat.interval)")
    }
    if step <= .zero { throw .configuration("\(field).step", "\(step) is not above zero") }
    if successes < 1 { throw .configuration("\(field).successes", "\(successes) is below 1") }
    if backOff <= .zero {
      throw .configuration("\(field).backOff", "\(backOff) is not above zero")
    }
    if failures < 1 { throw .configuration("\(field).failures", "\(failures) is below 1") }
  }
}
