-- SPDX-License-Identifier: BSD-3-Clause
-- Pktgen-DPDK: sends the probe of connlimit-probe.pkt on port 0 for some seconds, and says how many
-- SYNs went out and how many came through to port 1, which is on the gateway's other side. With a
-- limit of N connections for each source, `sluicectl connlimit list` has N for each of the 16
-- clients at the end, and what came through are the SYNs of those connections and their repeats.

local seconds = 5

local function counters(port)
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
pktgen.load("pktgen-scripts/connlimit-probe.pkt")
local sent, came = counters(0), counters(1)
pktgen.start("0")
pktgen.delay(seconds * 1000)
pktgen.stop("0")
pktgen.delay(1000)
local sent_now, came_now = counters(0), counters(1)
say("%d SYNs sent, %d came through\n", sent_now.opackets - sent.opackets,
	came_now.ipackets - came.ipackets)
pktgen.screen("on")
