// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
import Foundation
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// The C of .proto files, made by protoc-c, which runs as a protoc plug-in.
struct CSource {
  private var request = Google_Protobuf_Compiler_CodeGeneratorRequest()

  /// The C that protoc-c makes of the unchanged files.
  static func plain(_ files: [FileDescriptor]) -> CSource {
    var options = ExtractProtoOptions()
    // protoc-c copies comments into the C.
    options.includeSourceCodeInfo = true
    return CSource(files) { $0.extractProto(options: options) }
  }

  /// The C that the generated Swift uses.
  ///
  /// Its messages have the same bytes on the wire as the files' messages, but are declared in terms
  /// that protoc-c 1.4 understands: each field that is not repeated is optional in the sense of
  /// proto2, so that its presence is known; an enumeration is an int32; a map entry is a message.
  static func forValues(_ files: [FileDescriptor], _ names: CNames) -> CSource {
    CSource(files) { simplified($0, names) }
  }

  private init(
    _ files: [FileDescriptor], _ make: (FileDescriptor) -> Google_Protobuf_FileDescriptorProto
  ) {
    var added: Set<String> = []
    for file in files.flatMap(\.withDependencies) where added.insert(file.name).inserted {
      request.protoFile.append(make(file))
    }
    request.fileToGenerate = files.map(\.name)
  }

  func write(to folder: Folder, _ outputs: any GeneratorOutputs) throws {
    for file in try generated() {
      let isHeader = file.name.hasSuffix(".h")
      try outputs.add(
        fileName: folder.file(isHeader ? "include/\(file.name)" : file.name),
        contents: file.content)
    }
  }

  private func generated() throws -> [Google_Protobuf_Compiler_CodeGeneratorResponse.File] {
    let answer = try CSource.run("protoc-gen-c", try request.serializedBytes())
    let response = try Google_Protobuf_Compiler_CodeGeneratorResponse(serializedBytes: answer)
    guard response.error.isEmpty else { throw GeneratorError("protoc-c: \(response.error)") }
    return response.file
  }

  private static func run(_ tool: String, _ input: Data) throws -> Data {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [tool]
    let (standardInput, standardOutput) = (Pipe(), Pipe())
    process.standardInput = standardInput
    process.standardOutput = standardOutput
    try process.run()
    // It reads all of its input before it writes.
    try standardInput.fileHandleForWriting.write(contentsOf: input)
    try standardInput.fileHandleForWriting.close()
    let output = try standardOutput.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw GeneratorError(
        "\(tool) failed; it comes with protoc-c (Debian: protobuf-c-compiler, "
          + "Homebrew: protobuf-c)")
    }
    return output
  }
}

// MARK: - Simplified declarations

extension CSource {
  private static func simplified(
    _ file: FileDescriptor, _ names: CNames
  ) -> Google_Protobuf_FileDescriptorProto {
    var proto = Google_Protobuf_FileDescriptorProto()
    proto.name = file.name
    proto.package = CNames.package(of: file)
    proto.dependency = file.dependencies.map(\.name).filter { !hasNothingForC($0) }
    // Files that only declare options get no C.
    if !hasNothingForC(file.name) {
      proto.messageType = file.messages.map { simplified($0, names) }
    }
    return proto
  }

  private static func hasNothingForC(_ name: String) -> Bool {
    name == "longlink/options.proto" || name == "google/protobuf/descriptor.proto"
  }

  private static func simplified(
    _ message: Descriptor, _ names: CNames
  ) -> Google_Protobuf_DescriptorProto {
    var proto = Google_Protobuf_DescriptorProto()
    proto.name = names.name(message)
    proto.nestedType = message.messages.map { simplified($0, names) }
    proto.oneofDecl = message.realOneofs.map { oneof in
      .with { $0.name = names.member(oneof) }
    }
    proto.field = message.fields.map { field in
      var result = Google_Protobuf_FieldDescriptorProto()
      result.name = names.member(field)
      result.number = field.number
      result.label = field.isRepeated ? .repeated : .optional
      result.type = field.type == .enum ? .int32 : field.type
      if field.type == .message { result.typeName = "." + names.fullName(field.messageType) }
      if field.isRepeated, field.isPackable { result.options.packed = field.isPacked }
      if let oneof = field.realContainingOneof,
        let index = message.realOneofs.firstIndex(where: { $0 === oneof })
      {
        result.oneofIndex = Int32(index)
      }
      return result
    }
    return proto
  }
}
#endif
