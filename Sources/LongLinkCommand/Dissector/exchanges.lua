
-- What belongs together --------------------------------------------------------------------------

-- By the number of their TCP stream; what the first pass finds out is kept for the later ones.
local conversations = {}

function proto.init() conversations = {} end

local function new_conversation()
  local limit = protocol.maximum
  return {
    limits = { client = limit, server = limit },
    -- By requester and serial.
    waiting = { client = {}, server = {} },
    pings = { client = {}, server = {} },
    -- Messages of which fragments have come.
    parts = {},
    frames_seen = { client = 0, server = 0 },
    is_lost = { client = false, server = false },
    open = { client = false, server = false },
    states = {},
    records = {},
    ends = {},
  }
end

-- Joins fragments. False for one that continues a message.
local function join(frame, record, conversation)
  local key = frame.sender .. frame.rule.kind .. frame.serial
  local parts = conversation.parts[key]
  local has_more = frame.flags % 2 == 1
  local is_first = not parts
  if parts then
    if parts.type ~= frame.type or frame.flags > 1 then
      record.notes[#record.notes + 1] = { "fragmentMismatch" }
    end
    parts[#parts + 1] = frame.contents
  elseif has_more then
    parts = { frame.contents, type = frame.type, has_metadata = frame.flags > 1 }
    conversation.parts[key] = parts
  end
  if parts then
    record.fragment = #parts
    if not has_more then
      record.message = table.concat(parts)
      record.has_metadata = parts.has_metadata
      conversation.parts[key] = nil
    end
  end
  return is_first, not has_more
end

local function ask(frame, record, waiting)
  local earlier = waiting[frame.serial]
  if earlier and not earlier.answer and not earlier.cancelled then
    record.notes[#record.notes + 1] = { "serialInUse", "since frame " .. earlier.asked }
  end
  local exchange = { asked = record.number, time = record.time, type = frame.type }
  waiting[frame.serial] = exchange
  record.exchange = exchange
end

local function answer(frame, record, waiting, is_last)
  local exchange = waiting[frame.serial]
  if not exchange then
    record.notes[#record.notes + 1] = { "unknownSerial" }
    return
  end
  record.exchange = exchange
  record.answers = true
  if exchange.answer then
    record.notes[#record.notes + 1] = { "lateReply", "the first is in frame " .. exchange.answer }
  else
    if exchange.cancelled then record.notes[#record.notes + 1] = { "answerToCancelled" } end
    if is_last then exchange.answer = record.number end
  end
end

local function cancel(frame, record, conversation)
  local waiting, is_known = conversation.waiting[frame.sender], false
  local target = frame.rule.target
  if target == "type" then
    for _, exchange in pairs(waiting) do
      if exchange.type == frame.serial and not exchange.answer then
        exchange.cancelled = record.number
        is_known = true
      end
    end
  else
    local serial = frame.serial
    if target == "body" then
      serial = 0
      for index = 1, #frame.contents do
        local place = frame.rule.little and #frame.contents + 1 - index or index
        serial = serial * 256 + frame.contents:byte(place)
      end
    end
    local exchange = waiting[serial]
    if exchange then
      exchange.cancelled = exchange.cancelled or record.number
      record.exchange = exchange
      is_known = not exchange.answer
    end
    conversation.parts[frame.sender .. "request" .. serial] = nil
  end
  if not is_known then record.notes[#record.notes + 1] = { "cancelOfNothing" } end
end

local function ping_key(frame) return frame.serial .. "/" .. frame.contents end

-- Follows a frame in its conversation, once: frames are shown again and again.
local function follow(frame, record, conversation)
  local kind, sender = frame.rule.kind, frame.sender
  local is_first, is_last = true, true
  if frame.flags and frame.rule.fragments then
    is_first, is_last = join(frame, record, conversation)
  end
  if kind == "request" then
    if is_first then
      ask(frame, record, conversation.waiting[sender])
    else
      record.exchange = conversation.waiting[sender][frame.serial]
    end
  elseif kind == "response" then
    answer(frame, record, conversation.waiting[other[sender]], is_last)
  elseif kind == "cancel" then
    cancel(frame, record, conversation)
  elseif kind == "ping" then
    record.exchange = { asked = record.number, time = record.time }
    conversation.pings[sender][ping_key(frame)] = record.exchange
  elseif kind == "pong" then
    local exchange = conversation.pings[other[sender]][ping_key(frame)]
    if exchange and not exchange.answer then
      exchange.answer = record.number
      record.exchange, record.answers = exchange, true
    else
      record.notes[#record.notes + 1] = { "unsolicitedPong" }
    end
  elseif kind == "hello" then
    if sender == "server" or conversation.heard_hello then
      record.notes[#record.notes + 1] = { "unexpectedHello" }
    elseif conversation.frames_seen.client > 0 then
      record.notes[#record.notes + 1] = { "helloNotFirst" }
    end
    conversation.heard_hello = true
  elseif kind == "welcome" then
    if sender == "client" or conversation.heard_welcome then
      record.notes[#record.notes + 1] = { "unexpectedWelcome" }
    end
    conversation.heard_welcome = true
  elseif kind == "ignored" then
    record.notes[#record.notes + 1] = { "ignoredKind" }
  end
  conversation.frames_seen[sender] = conversation.frames_seen[sender] + 1
end

-- What both sides have said about limits and features.
local function agree(frame, conversation, message)
  local kind = frame.rule.kind
  if kind == "welcome" or kind == "hello" then
    local limit = message.max_body or 0
    conversation.limits[other[frame.sender]] = limit > 0 and limit or protocol.maximum
  end
  if kind == "welcome" then
    local features = message.features or 0
    -- Both features that there are say that a flag may be used.
    conversation.flags = features % 4
  end
end
