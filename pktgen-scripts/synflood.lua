-- SPDX-License-Identifier: BSD-3-Clause
-- Pktgen-DPDK: the flood of synflood.pkt at rising rates, with what was sent and received at each.
-- Start Pktgen at the top of the tree: pktgen -l 0-2 -- -P -m "[1:2].0" -f
-- pktgen-scripts/synflood.lua

local port = 0
local rates = { 1, 5, 10, 25, 50, 100 } -- percent of the port's speed
local seconds = 10

-- Newer versions take one argument and have the totals in "curr".
local function counters()
	local known, stats = pcall(pktgen.portStats, tostring(port))
	if known then
		return stats[port].curr
	end
	return pktgen.portStats(tostring(port), "port")[port]
end

local function say(...)
	io.write(string.format(...))
end

pktgen.screen("off")
pktgen.load("pktgen-scripts/synflood.pkt")
say("%8s %14s %14s %12s\n", "percent", "sent/s", "received/s", "errors")
for _, rate in ipairs(rates) do
	pktgen.set(tostring(port), "rate", rate)
	pktgen.start(tostring(port))
	pktgen.delay(2000) -- the rate settles, and the gateway's table fills
	local before = counters()
	pktgen.delay(seconds * 1000)
	local after = counters()
	pktgen.stop(tostring(port))
	say("%8d %14d %14d %12d\n", rate,
		(after.opackets - before.opackets) // seconds,
		(after.ipackets - before.ipackets) // seconds,
		after.oerrors - before.oerrors)
	pktgen.delay(1000)
end
pktgen.screen("on")
