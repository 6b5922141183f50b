-- SPDX-License-Identifier: Apache-2.0

-- Exchanges --------------------------------------------------------------------------------------

-- By the number of the TCP stream. The results of the first pass are kept for later passes.
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
    -- The fragments of unfinished messages.
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

-- Counts the bytes of metadata and of payload in a frame. `left` is the number of metadata bytes
-- that earlier fragments left to come. Returns the number that this one leaves.
local function split(frame, record, left)
  local size = #frame.contents
  if not left and frame.flags >= 2 and size >= 2 then
    left = frame.contents:byte(1) * 256 + frame.contents:byte(2)
    size = size - 2
  end
  local metadata = math.min(left or 0, size)
  if metadata > 0 then record.metadata = metadata end
  record.payload = size - metadata
  return left and left - metadata
end

-- Joins fragments. Returns whether this one begins its message, and whether it ends it.
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
    parts = { frame.contents, type = frame.type, has_metadata = frame.flags > 1, size = 0 }
    conversation.parts[key] = parts
  end
  local left = split(frame, record, parts and parts.left)
  if parts then
    parts.left = left
    parts.size = parts.size + #frame.contents
    -- A request that is too large is refused, but breaks no rule.
    if frame.rule.kind ~= "request" and parts.size > conversation.limits[frame.sender] then
      remark(record, "lengthOverLimit", parts.size)
    end
    record.fragment = #parts
    record.has_more = has_more
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

-- Counts the pings of a side, because their number per time is limited.
local function count_ping(frame, record, conversation)
  local times = conversation.ping_times[frame.sender]
  times[#times + 1] = record.time
  while times[1] <= record.time - protocol.ping_window do table.remove(times, 1) end
  if #times > protocol.pings_per_window then remark(record, "tooManyPings") end
end

-- A response to a request that was answered before, or that was not seen.
local function answer_again(frame, record, conversation, earlier)
  local meaning = protocol.unknown_serial
  local detail = earlier and "the first is in frame " .. earlier
  if meaning == "heartbeat" and frame.sender == "server" then
    remark(record, "unknownSerial", detail)
    count_ping(frame, record, conversation)
  elseif meaning ~= "drop" and (earlier or conversation.is_whole) then
    remark(record, "serialOutOfRange", detail or "no request has it")
  else
    remark(record, earlier and "lateReply" or "unknownSerial", detail)
  end
end

local function answer(frame, record, conversation, is_last)
  local exchange = conversation.waiting[other[frame.sender]][frame.serial]
  if not exchange then return answer_again(frame, record, conversation) end
  record.exchange = exchange
  record.answers = true
  if exchange.answer then return answer_again(frame, record, conversation, exchange.answer) end
  local expected = protocol.response_offset and exchange.type + protocol.response_offset
  if expected and frame.type and frame.type ~= expected then
    remark(record, protocol.wrong_type, frame.type .. " in place of " .. expected)
  end
  if exchange.cancelled then remark(record, "answerToCancelled") end
  if exchange.items then
    record.items_up = exchange.items[other[frame.sender]]
    record.items_down = exchange.items[frame.sender]
  end
  if is_last then exchange.answer = record.number end
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
    local serial = frame.named or frame.serial
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

-- A frame of a stream. Its serial shows which side's request it belongs to.
local function carry(frame, record, conversation, is_last)
  local waiting = conversation.waiting
  local exchange = waiting.client[frame.serial] or waiting.server[frame.serial]
  if not exchange then return end
  record.exchange = exchange
  record.carried = true
  if frame.rule.kind == "item" and is_last then
    exchange.items = exchange.items or { client = 0, server = 0 }
    exchange.items[frame.sender] = exchange.items[frame.sender] + 1
    record.item = exchange.items[frame.sender]
  end
end

local function ping_key(frame) return frame.serial .. "/" .. frame.contents end

-- Updates the conversation for a frame, only once: Wireshark shows frames repeatedly.
local function follow(frame, record, conversation)
  local kind, sender = frame.rule.kind, frame.sender
  local is_first, is_last = true, true
  -- The fragments of an unsolicited response are not joined.
  local is_wanted = kind ~= "response" or conversation.waiting[other[sender]][frame.serial]
  if frame.flags and frame.rule.fragments then
    if is_wanted then
      is_first, is_last = join(frame, record, conversation)
    else
      split(frame, record)
    end
  end
  if kind == "request" then
    if is_first then
      ask(frame, record, conversation.waiting[sender])
    else
      record.exchange = conversation.waiting[sender][frame.serial]
    end
  elseif kind == "response" then
    answer(frame, record, conversation, is_last)
  elseif kind == "cancel" then
    cancel(frame, record, conversation)
  elseif kind == "item" or kind == "end" or kind == "credit" then
    carry(frame, record, conversation, is_last)
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
  elseif kind == "hello" and sender == "client" then
    if conversation.heard_hello then
      remark(record, "unexpectedHello")
    elseif conversation.frames_seen.client > 0 then
      remark(record, "helloNotFirst")
    end
    conversation.heard_hello = true
  elseif kind == "welcome" and sender == "server" then
    local is_asked_for = conversation.heard_hello or not conversation.is_whole
    if conversation.heard_welcome or not is_asked_for then
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

-- Whether a welcome states all terms of requests that run once, or none if they are not agreed.
local function has_right_terms(message, has_once)
  local space = message.key_space or 0
  local retention, time = message.key_retention or 0, message.key_time or 0
  if has_once then return space > 0 and retention > 0 and time > 0 end
  return not message.key_space and retention == 0 and time == 0
end

-- Remarks on metadata that contradicts its frame.
local function judge_metadata(frame, record, conversation, metadata)
  if frame.rule.kind == "response" and frame.refused == 1 and conversation.has_once
    and (metadata.replayed or 0) > 0
  then
    remark(record, "tagNotAllowed")
  end
end

-- Keeps the limits and features that both sides announce.
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
    conversation.has_streams = features % 8 >= 4
    conversation.has_renewal = features % 16 >= 8
    conversation.has_once = features % 32 >= 16
    local offer = conversation.offer
    local lacks_needed = conversation.has_streams and conversation.flags < 3
      or conversation.has_once and conversation.flags % 2 == 0
    if not has_right_terms(message, conversation.has_once) then
      remark(record, "malformedControl")
    end
    if lacks_needed or offer and has_more_bits(features, offer.features or 0) then
      remark(record, "featureNotOffered")
    end
    if offer and (message.version or 0) > math.max(1, offer.version or 0) then
      remark(record, "versionNotOffered")
    end
  end
end
