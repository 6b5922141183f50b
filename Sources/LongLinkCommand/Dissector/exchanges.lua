
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
    ping_times = { client = {}, server = {} },
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

local function remark(record, name, detail)
  record.notes[#record.notes + 1] = { name, detail }
end

-- Joins fragments. Returns whether one begins a message, and whether it ends it.
local function join(frame, record, conversation)
  local key = frame.sender .. frame.rule.kind .. frame.serial
  local parts = conversation.parts[key]
  local has_more = frame.flags % 2 == 1
  local is_first = not parts
  if parts then
    if parts.type ~= frame.type or frame.flags > 1 then
      remark(record, "fragmentMismatch")
    elseif #frame.contents > protocol.fragment_limit then
      remark(record, "sizeNotAllowed", #frame.contents)
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
    remark(record, "serialInUse", "since frame " .. earlier.asked)
  end
  local exchange = { asked = record.number, time = record.time, type = frame.type }
  waiting[frame.serial] = exchange
  record.exchange = exchange
end

local function answer(frame, record, waiting, is_last)
  local exchange = waiting[frame.serial]
  if not exchange then
    remark(record, "unknownSerial")
    return
  end
  record.exchange = exchange
  record.answers = true
  if exchange.answer then
    remark(record, "lateReply", "the first is in frame " .. exchange.answer)
  else
    if exchange.cancelled then remark(record, "answerToCancelled") end
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
  if not is_known then remark(record, "cancelOfNothing") end
end

-- Counts the pings of a side, which may send only so many in a time.
local function count_ping(frame, record, conversation)
  local times = conversation.ping_times[frame.sender]
  times[#times + 1] = record.time
  while times[1] <= record.time - protocol.ping_window do table.remove(times, 1) end
  if #times > protocol.pings_per_window then remark(record, "tooManyPings") end
end

local function ping_key(frame) return frame.serial .. "/" .. frame.contents end

-- Follows a frame in its conversation, once: frames are shown again and again.
local function follow(frame, record, conversation)
  local kind, sender = frame.rule.kind, frame.sender
  local is_first, is_last = true, true
  -- Of an answer that nobody waits for nothing is put together.
  local is_wanted = kind ~= "response" or conversation.waiting[other[sender]][frame.serial]
  if frame.flags and frame.rule.fragments and is_wanted then
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
    count_ping(frame, record, conversation)
    record.exchange = { asked = record.number, time = record.time }
    conversation.pings[sender][ping_key(frame)] = record.exchange
  elseif kind == "pong" then
    local exchange = conversation.pings[other[sender]][ping_key(frame)]
    if exchange and not exchange.answer then
      exchange.answer = record.number
      record.exchange, record.answers = exchange, true
    else
      remark(record, "unsolicitedPong")
    end
  elseif kind == "hello" then
    if sender == "server" or conversation.heard_hello then
      remark(record, "unexpectedHello")
    elseif conversation.frames_seen.client > 0 then
      remark(record, "helloNotFirst")
    end
    conversation.heard_hello = true
  elseif kind == "welcome" then
    if sender == "client" or conversation.heard_welcome then
      remark(record, "unexpectedWelcome")
    end
    conversation.heard_welcome = true
  elseif kind == "ignored" then
    remark(record, "ignoredKind")
  end
  conversation.frames_seen[sender] = conversation.frames_seen[sender] + 1
end

local function has_more_bits(value, than)
  for bit = 0, 52 do
    local unit = 2 ^ bit
    if math.floor(value / unit) % 2 > math.floor(than / unit) % 2 then return true end
  end
  return false
end

-- What both sides have said about limits and features.
local function agree(frame, record, conversation, message)
  local kind = frame.rule.kind
  if kind == "hello" then conversation.offer = message end
  if kind == "welcome" or kind == "hello" then
    local limit = message.max_body or 0
    conversation.limits[other[frame.sender]] = limit > 0 and limit or protocol.maximum
  end
  if kind == "welcome" then
    local features = message.features or 0
    conversation.flags = features % 4
    local offer = conversation.offer
    if offer and has_more_bits(features, offer.features or 0) then
      remark(record, "featureNotOffered")
    end
    if offer and (message.version or 0) > math.max(1, offer.version or 0) then
      remark(record, "versionNotOffered")
    end
  end
end
