// SPDX-License-Identifier: Apache-2.0

#if Operations
extension MetricsText {
  /// The metrics of recordings that were written to files.
  static func recordings(_ counts: RecordingGate.Counts) -> String {
    family(
      "longlink_recordings_total", "counter", "Recordings that were written, by their cause.",
      counts.written.sorted { $0.key < $1.key }.map { ("cause", $0.key, $0.value) })
      + family(
        "longlink_recordings_skipped_total", "counter",
        "Causes without a recording, because one was being written or they had one just before.",
        counts.skipped)
      + family(
        "longlink_recordings_failed_total", "counter", "Recordings that could not be written.",
        counts.failed)
  }
}
#endif
