// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

// The messages of `Protocols/uploads.proto`, which says what their fields mean.

/// The request of route 12, Create.
package struct CreateRequest: UploadMessage {
  package var parts: [Part] = []
  package var key = ""

  package init() {}

  package init(parts: [Part] = [], key: String = "") {
    self.parts = parts
    self.key = key
  }

  package mutating func code(_ coder: inout some FieldCoder & ~Copyable) throws(BodyError) {
    try coder.field(1, &parts)
    try coder.field(2, &key)
  }
}

/// One part of an upload.
package struct Part: UploadMessage {
  package var field = ""
  package var fileName = ""
  package var contentType = ""
  package var size: UInt64?

  package init() {}

  package init(
    field: String = "", fileName: String = "", contentType: String = "", size: UInt64? = nil
  ) {
    self.field = field
    self.fileName = fileName
    self.contentType = contentType
    self.size = size
  }

  package mutating func code(_ coder: inout some FieldCoder & ~Copyable) throws(BodyError) {
    try coder.field(1, &field)
    try coder.field(2, &fileName)
    try coder.field(3, &contentType)
    try coder.field(4, &size)
  }
}

/// The answer of route 12.
package struct CreateResponse: UploadMessage {
  package var id = ""
  package var generation: UInt64 = 0
  package var offset: UInt64 = 0
  package var expiresInMs: UInt64 = 0
  package var mostAppend: UInt64 = 0

  package init() {}

  package init(
    id: String = "", generation: UInt64 = 0, offset: UInt64 = 0, expiresInMs: UInt64 = 0,
    mostAppend: UInt64 = 0
  ) {
    self.id = id
    self.generation = generation
    self.offset = offset
    self.expiresInMs = expiresInMs
    self.mostAppend = mostAppend
  }

  package mutating func code(_ coder: inout some FieldCoder & ~Copyable) throws(BodyError) {
    try coder.field(1, &id)
    try coder.field(2, &generation)
    try coder.field(3, &offset)
    try coder.field(4, &expiresInMs)
    try coder.field(5, &mostAppend)
  }
}

/// The request of route 13, Status.
package struct StatusRequest: UploadMessage {
  package var id = ""
  package var takesOver = false

  package init() {}

  package init(id: String = "", takesOver: Bool = false) {
    self.id = id
    self.takesOver = takesOver
  }

  package mutating func code(_ coder: inout some FieldCoder & ~Copyable) throws(BodyError) {
    try coder.field(1, &id)
    try coder.field(2, &takesOver)
  }
}

/// The answer of route 13.
package struct StatusResponse: UploadMessage {
  package var offset: UInt64 = 0
  package var generation: UInt64 = 0
  package var state: UploadState = .open
  package var expiresInMs: UInt64 = 0
  package var mostAppend: UInt64 = 0

  package init() {}

  package init(
    offset: UInt64 = 0, generation: UInt64 = 0, state: UploadState = .open, expiresInMs: UInt64 = 0,
    mostAppend: UInt64 = 0
  ) {
    self.offset = offset
    self.generation = generation
    self.state = state
    self.expiresInMs = expiresInMs
    self.mostAppend = mostAppend
  }

  package mutating func code(_ coder: inout some FieldCoder & ~Copyable) throws(BodyError) {
    try coder.field(1, &offset)
    try coder.field(2, &generation)
    try coder.field(3, &state)
    try coder.field(4, &expiresInMs)
    try coder.field(5, &mostAppend)
  }
}

/// The request of route 14, Append, whose items are bytes of the upload.
package struct AppendRequest: UploadMessage {
  package var id = ""
  package var generation: UInt64 = 0
  package var offset: UInt64 = 0

  package init() {}

  package init(id: String = "", generation: UInt64 = 0, offset: UInt64 = 0) {
    self.id = id
    self.generation = generation
    self.offset = offset
  }

  package mutating func code(_ coder: inout some FieldCoder & ~Copyable) throws(BodyError) {
    try coder.field(1, &id)
    try coder.field(2, &generation)
    try coder.field(3, &offset)
  }
}

/// The answer of route 14: all items are durable.
package struct AppendResponse: UploadMessage {
  package var offset: UInt64 = 0

  package init() {}

  package init(offset: UInt64 = 0) {
    self.offset = offset
  }

  package mutating func code(_ coder: inout some FieldCoder & ~Copyable) throws(BodyError) {
    try coder.field(1, &offset)
  }
}

/// The body of a 409: where the next append has to begin, and the upload's generation.
package struct AppendConflict: UploadMessage {
  package var offset: UInt64 = 0
  package var generation: UInt64 = 0

  package init() {}

  package init(offset: UInt64 = 0, generation: UInt64 = 0) {
    self.offset = offset
    self.generation = generation
  }

  package mutating func code(_ coder: inout some FieldCoder & ~Copyable) throws(BodyError) {
    try coder.field(1, &offset)
    try coder.field(2, &generation)
  }
}

/// The request of route 15, Finish.
package struct FinishRequest: UploadMessage {
  package var id = ""
  package var generation: UInt64 = 0
  package var size: UInt64 = 0
  package var sha256: [UInt8] = []

  package init() {}

  package init(id: String = "", generation: UInt64 = 0, size: UInt64 = 0, sha256: [UInt8] = []) {
    self.id = id
    self.generation = generation
    self.size = size
    self.sha256 = sha256
  }

  package mutating func code(_ coder: inout some FieldCoder & ~Copyable) throws(BodyError) {
    try coder.field(1, &id)
    try coder.field(2, &generation)
    try coder.field(3, &size)
    try coder.field(4, &sha256)
  }
}

/// The answer of route 15.
package struct FinishResponse: UploadMessage {
  package var names: [String] = []

  package init() {}

  package init(names: [String] = []) {
    self.names = names
  }

  package mutating func code(_ coder: inout some FieldCoder & ~Copyable) throws(BodyError) {
    try coder.field(1, &names)
  }
}

/// The request of route 16, Abort.
package struct AbortRequest: UploadMessage {
  package var id = ""

  package init() {}

  package init(id: String = "") {
    self.id = id
  }

  package mutating func code(_ coder: inout some FieldCoder & ~Copyable) throws(BodyError) {
    try coder.field(1, &id)
  }
}

/// Whether an upload is open, so that bytes can be appended, or finished.
package enum UploadState: RawRepresentable, Hashable, Sendable {
  case open
  case finished
  /// A number without a name in the .proto file.
  case unrecognized(Int32)

  package init(rawValue: Int32) {
    switch rawValue {
    case 0: self = .open
    case 1: self = .finished
    default: self = .unrecognized(rawValue)
    }
  }

  package var rawValue: Int32 {
    switch self {
    case .open: 0
    case .finished: 1
    case .unrecognized(let number): number
    }
  }
}
