-- SPDX-License-Identifier: Apache-2.0
-- From here on the source is the same for every protocol: the table above controls it.

-- Wireshark may already know another protocol of this name.
local is_new, proto = pcall(Proto, protocol.name, protocol.title)
if not is_new then
  protocol.name = "longlink_" .. protocol.name
  protocol.title = "LongLink " .. protocol.title
  proto = Proto(protocol.name, protocol.title)
end
local filter = protocol.name .. "."

-- Sides and checksums ----------------------------------------------------------------------------

local other = { client = "server", server = "client" }

local function adler32(data, sum)
  local low, high = sum % 65536, math.floor(sum / 65536)
  local first, count = 1, #data
  while first <= count do
    -- Few enough at once for the sums to stay exact.
    local last = math.min(first + 4095, count)
    for index = first, last do
      low = low + data:byte(index)
      high = high + low
    end
    low, high = low % 65521, high % 65521
    first = last + 1
  end
  return high * 65536 + low
end

local bits = bit or bit32
-- Lua 5.3 and later have an operator, which earlier versions cannot even parse.
local xor = bits and bits.bxor or load("return function(a, b) return a ~ b end")()
local crc_table

local function crc32(data, sum)
  if not crc_table then
    crc_table = {}
    for index = 0, 255 do
      local value = index
      for _ = 1, 8 do
        local half = math.floor(value / 2)
        value = value % 2 == 1 and xor(half, 0xEDB88320) % 4294967296 or half
      end
      crc_table[index] = value
    end
  end
  local value = 4294967295 - sum
  for index = 1, #data do
    local low = xor(value % 256, data:byte(index)) % 256
    value = xor(math.floor(value / 256), crc_table[low]) % 4294967296
  end
  return 4294967295 - value
end

local sums = { adler32 = { adler32, 1 }, crc32 = { crc32, 0 } }

-- Fields -----------------------------------------------------------------------------------------

local fields = {
  kind = ProtoField.string(filter .. "kind", "Kind"),
  body = ProtoField.bytes(filter .. "body", "Body"),
  delimiter = ProtoField.bytes(filter .. "delimiter", "Delimiter"),
  skipped = ProtoField.bytes(filter .. "skipped", "Bytes that belong to no frame"),
  sum = ProtoField.uint32(filter .. "computed_checksum", "Computed checksum", base.HEX),
  status = ProtoField.uint8(
    filter .. "checksum_status", "Checksum status", base.DEC,
    { [0] = "Bad", [1] = "Good", [2] = "Unverified" }),
  answer = ProtoField.framenum(
    filter .. "response_in", "Response in", base.NONE, frametype.RESPONSE),
  question = ProtoField.framenum(
    filter .. "request_in", "Request in", base.NONE, frametype.REQUEST),
  cancelled = ProtoField.framenum(filter .. "cancelled_in", "Cancelled in", base.NONE),
  item = ProtoField.uint32(filter .. "item", "Number of the item"),
  items_up = ProtoField.uint32(filter .. "items_up", "Items of the requester"),
  items_down = ProtoField.uint32(filter .. "items_down", "Items of the responder"),
  time = ProtoField.relative_time(filter .. "time", "Time since the request"),
}

local makers = { ProtoField.uint8, ProtoField.uint16, nil, ProtoField.uint32 }
local bases = { dec = base.DEC, hex = base.HEX }

local function make(field)
  local abbreviation = filter .. field.filter
  if field.bytes then return ProtoField.bytes(abbreviation, field.title) end
  if field.width == 8 then
    return ProtoField.uint64(abbreviation, field.title, bases[field.base])
  end
  return makers[field.width](
    abbreviation, field.title, bases[field.base], field.values, field.mask)
end

-- The fields of 8 bytes, which need a UInt64 in place of a number.
local wide = {}

for _, field in ipairs(protocol.fields) do
  fields[field.filter] = make(field)
  wide[field.filter] = field.width == 8
end

local message_makers = {
  number = function(...) return ProtoField.uint64(...) end,
  text = function(...) return ProtoField.string(...) end,
  bytes = function(...) return ProtoField.bytes(...) end,
  entry = function(...) return ProtoField.string(...) end,
}

for _, message in pairs(protocol.messages) do
  for _, field in pairs(message.fields) do
    field.shown = message_makers[field.type](filter .. field.filter, field.title)
    fields[field.filter] = field.shown
  end
end

local listed = {}
for _, field in pairs(fields) do listed[#listed + 1] = field end
proto.fields = listed

local experts = {}
for name, note in pairs(protocol.notes) do
  experts[name] = ProtoExpert.new(
    filter .. name, note.text, expert.group[note.group], expert.severity[note.severity])
end
local listed_experts = {}
for _, note in pairs(experts) do listed_experts[#listed_experts + 1] = note end
proto.experts = listed_experts

proto.prefs.port = Pref.uint("TCP port", protocol.port, "The port that the server listens on")
