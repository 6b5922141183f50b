# SPDX-License-Identifier: Apache-2.0
"""instructions.py ADDRESSES MAPS ENTRY: prints instructions and calls per request, by function.

ADDRESSES is the output of instructions.c, MAPS the process's /proc/PID/maps, ENTRY a part of the name
of a function that is called once for each request. Only whole turns of the loop are counted, from one
end of a turn to another.
"""
import bisect
import collections
import functools
import struct
import subprocess
import sys

TURN = "turnEnds(token:)"
LINES = 45


def output(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True).stdout


@functools.cache
def symbols(path):
    """The loaded segments of a file, and the addresses and names of its functions."""
    segments, found = [], {}
    for line in output("readelf", "-lW", path).splitlines():
        words = line.split()
        if words[:1] == ["LOAD"]:
            segments.append((int(words[1], 16), int(words[2], 16), int(words[4], 16)))
    for flags in ("-n", "-nD"):
        for line in output("nm", flags, "--defined-only", path).splitlines():
            words = line.split(None, 2)
            if len(words) == 3 and words[1] in "tTwWi":
                found[int(words[0], 16)] = words[2]
    addresses = sorted(found)
    return segments, addresses, [found[address] for address in addresses]


def main(trace_path, maps_path, entry):
    with open(trace_path, "rb") as file:
        data = file.read()
    trace = struct.unpack(f"{len(data) // 8}Q", data)
    maps = []
    with open(maps_path) as file:
        for line in file:
            words = line.split()
            if len(words) >= 6 and "x" in words[1]:
                start, end = (int(word, 16) for word in words[0].split("-"))
                maps.append((start, end, int(words[2], 16), words[5]))
    starts = [mapping[0] for mapping in maps]

    @functools.cache
    def function(address):
        """The function of an instruction, and whether the instruction is its first."""
        index = bisect.bisect_right(starts, address) - 1
        if index < 0 or address >= maps[index][1] or maps[index][3].startswith("["):
            return "?", False
        start, _, offset, path = maps[index]
        segments, addresses, names = symbols(path)
        place = address - start + offset
        for file_offset, virtual, size in segments:
            if file_offset <= place < file_offset + size:
                place += virtual - file_offset
                break
        index = bisect.bisect_right(addresses, place) - 1
        return (names[index], place == addresses[index]) if index >= 0 else (path, False)

    mangled = sorted({function(address)[0] for address in set(trace)})
    plain = output("swift", "demangle", "--simplified", "--compact", text="\n".join(mangled))
    names = dict(zip(mangled, plain.splitlines()))
    ends = [
        index for index, address in enumerate(trace)
        if function(address)[1] and TURN in names[function(address)[0]]
    ]
    if len(ends) < 2:
        sys.exit("no whole turn was seen: count more instructions")
    counts, calls = collections.Counter(), collections.Counter()
    for address in trace[ends[0]:ends[-1]]:
        name, is_entry = function(address)
        counts[names[name]] += 1
        calls[names[name]] += is_entry
    requests = sum(calls[name] for name in calls if entry in name)
    if requests == 0:
        sys.exit(f"no call of {entry} was seen")
    print(f"{sum(counts.values()) / requests:10.1f}  instructions a request, of {requests} requests")
    for name, count in counts.most_common(LINES):
        print(f"{count / requests:10.1f}  x{calls[name] / requests:6.2f}  {name[:110]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
