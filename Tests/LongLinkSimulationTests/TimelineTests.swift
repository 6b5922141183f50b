// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import LongLinkScenarios
@testable import LongLinkTesting

#if canImport(FoundationXML)
import FoundationXML
#endif

/// The drawings of a run.
@Suite struct TimelineTests {
  private func timeline(_ seed: UInt64) async throws -> SimulationTimeline {
    try #require(try await Scenario(seed: seed, profile: .restarts).run(recording: true).timeline)
  }

  @Test func `a run that is not recorded has no timeline`() async throws {
    #expect(try await Scenario(seed: 1, profile: .calm).run().timeline == nil)
  }

  @Test func `the text has a lane for each process, and frames, faults and states`() async throws {
    let text = try await timeline(2).text()
    let lines = text.split(separator: "\n")
    #expect(lines[0].contains("client-0") && lines[0].contains("server-0"))
    #expect(lines.contains { $0.contains("hello") && $0.contains("●") && $0.contains("▶") })
    #expect(lines.contains { $0.contains("welcome") && $0.contains("◀") })
    #expect(lines.contains { $0.contains("request type") && $0.contains("#50") })
    #expect(lines.contains { $0.contains("response 200 #50") })
    #expect(lines.contains { $0.contains("*** fault:") && $0.contains("✱") })
    #expect(lines.contains { $0.contains("connected by attempt 1") && $0.contains("◆") })
    #expect(lines.contains { $0.contains("connects to 10.0.0.") && $0.contains("○") })
  }

  @Test func `a part can be cut out`() async throws {
    let whole = try await timeline(2)
    let part = whole.cut(
      from: LinkInstant(nanoseconds: 100_000_000_000), to: LinkInstant(nanoseconds: 200_000_000_000)
    )
    #expect(part.count > 0 && part.count < whole.count)
    let seconds = part.text().split(separator: "\n").dropFirst().compactMap { line in
      line.split(separator: " ").first.flatMap { Double($0) }
    }
    #expect(seconds.count == part.count)
    #expect(seconds.allSatisfy { (100...200).contains($0) })
    #expect(seconds == seconds.sorted())
  }

  @Test func `the SVG is well-formed and bounded`() async throws {
    let timeline = try await timeline(2)
    for limit in [10, 4_000] {
      let svg = timeline.svg(limit: limit)
      let parser = XMLParser(data: Data(svg.utf8))
      #expect(parser.parse(), "\(String(describing: parser.parserError))")
      #expect(svg.contains("client-0"))
      #expect(svg.contains(" left out: draw a shorter time") == (timeline.count > limit))
    }
    #expect(timeline.svg(limit: 10).count < 20_000)
  }

  @Test func `the SVG is as high as its events and as wide as its words`() async throws {
    let timeline = try await timeline(2)
    for count in [1, 40, 400] {
      let part = timeline.prefix(count).timeline
      let svg = part.svg()
      let size = try #require(svg.firstMatch(of: /width="([0-9]+)" height="([0-9]+)"/))
      let (width, height) = (try #require(Int(size.1)), try #require(Int(size.2)))
      #expect(height == 50 + (count + 2) * 14)
      // The words begin behind the lanes; a letter takes 6 to 7 pixels.
      let words = svg.matches(of: /<text x="([0-9]+)" y="[0-9]+" fill="#[0-9a-f]+">([^<]*)</)
      let ends = words.map { (Int($0.1) ?? 0) + $0.2.count * 6 }
      let longest = try #require(ends.max())
      #expect(longest <= width)
      #expect(width <= longest + 200)
    }
  }

  @Test func `pings and pongs can be left out`() async throws {
    let whole = try await timeline(2)
    let (rest, omitted) = whole.withoutHeartbeats
    let heartbeats = whole.text().split(separator: "\n").count {
      $0.contains(" ping ") || $0.contains(" pong ")
    }
    #expect(omitted == heartbeats && omitted > 0)
    #expect(rest.count == whole.count - omitted)
    #expect(!rest.text().contains(" pong "))
  }

  @Test func `times and counts are formatted for people`() async throws {
    #expect(Duration.seconds(2.153392685).inSeconds == "2.153 s")
    #expect(Duration.seconds(3).inSeconds == "3 s")
    #expect(Duration.milliseconds(-500).inSeconds == "-0.5 s")
    #expect(Duration.nanoseconds(1).inSeconds == "0 s")
    let text = try await timeline(2).text()
    #expect(text.contains(#/waits for [0-9.]{1,8} s of at most [0-9.]{1,6} s, /#))
    #expect(text.contains("1 address\n") && !text.contains("1 addresses"))
  }
}
