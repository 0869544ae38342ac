# SPDX-License-Identifier: BSD-3-Clause
"""VLAN and QinQ (B63): the tenant is (outer id, inner id); priority and DEI stay with the frame."""
import pytest

from harness import entry
from packets import A, S, tagged, udp

FLOW = A(5000) > S(53)
FRAME = udp(FLOW)
C_TAG, S_TAG, LEGACY = 0x8100, 0x88A8, 0x9100

CONFIG = '''\
port add in devargs net_null0
port add out devargs net_null1
netns add T0 T1 T2 T3
link add inside port in netns T0
link add outside port out netns T0 peer inside
link add inside port in vlan 100 netns T1
link add outside port out vlan 200 netns T1 peer inside
link add inside port in vlan 10.100 netns T2
link add outside port out vlan 20.300 netns T2 peer inside
link add inside port in vlan 10.200 netns T3
link add outside port out netns T3 vlan 4094 peer inside
'''


def tci(vid, pcp=0, dei=0):
    return pcp << 13 | dei << 12 | vid


@pytest.fixture
def tenants(case):
    return case(config=CONFIG)


def only(c, at, tenant):
    """The flow is in one tenant and in no other."""
    for netns in ('T0', 'T1', 'T2', 'T3'):
        listed = [entry(FLOW, 'udp', netns=netns, unreplied=True)] if netns == tenant else []
        c.at(at).entries(*listed, netns=netns)


# name: tags that arrive on `in`, the tenant, tags that leave on `out`
FORWARDED = {
    'untagged': ([], 'T0', []),
    'priority tag': ([(C_TAG, tci(0, 5))], 'T0', [(C_TAG, tci(0, 5))]),
    'one tag': ([(C_TAG, tci(100))], 'T1', [(C_TAG, tci(200))]),
    'priority 5': ([(C_TAG, tci(100, 5))], 'T1', [(C_TAG, tci(200, 5))]),
    'priority 7 and DEI': ([(C_TAG, tci(100, 7, 1))], 'T1', [(C_TAG, tci(200, 7, 1))]),
    'service tag alone': ([(S_TAG, tci(100, 2))], 'T1', [(S_TAG, tci(200, 2))]),
    'legacy tag alone': ([(LEGACY, tci(100))], 'T1', [(LEGACY, tci(200))]),
    'two tags': ([(S_TAG, tci(10)), (C_TAG, tci(100))], 'T2',
                 [(S_TAG, tci(20)), (C_TAG, tci(300))]),
    'two tags, priorities': ([(S_TAG, tci(10, 6, 1)), (C_TAG, tci(100, 3))], 'T2',
                             [(S_TAG, tci(20, 6, 1)), (C_TAG, tci(300, 3))]),
    'two tags, both 802.1Q': ([(C_TAG, tci(10)), (C_TAG, tci(100))], 'T2',
                              [(C_TAG, tci(20)), (C_TAG, tci(300))]),
    'two tags, legacy outer': ([(LEGACY, tci(10)), (C_TAG, tci(100))], 'T2',
                               [(LEGACY, tci(20)), (C_TAG, tci(300))]),
    'two tags to one': ([(S_TAG, tci(10, 4)), (C_TAG, tci(200, 1))], 'T3',
                        [(C_TAG, tci(4094, 4))]),
}


@pytest.mark.parametrize('name', FORWARDED)
def test_b63_forwarded(tenants, name):
    arrives, tenant, leaves = FORWARDED[name]
    c = tenants
    c.at(0).inside(tagged(FRAME, *arrives), becomes=tagged(FRAME, *leaves))
    only(c, 1, tenant)
    c.replay()


def test_b63_there_and_back(tenants):
    """Replies find their tenant by their own side's tags."""
    c = tenants
    answer = udp(~FLOW)
    c.at(0).inside(tagged(FRAME, (S_TAG, tci(10, 1)), (C_TAG, tci(100))),
                   becomes=tagged(FRAME, (S_TAG, tci(20, 1)), (C_TAG, tci(300))))
    c.at(1).outside(tagged(answer, (S_TAG, tci(20)), (C_TAG, tci(300, 2))),
                    becomes=tagged(answer, (S_TAG, tci(10)), (C_TAG, tci(100, 2))))
    c.at(2).entries(entry(FLOW, 'udp'), netns='T2')
    c.replay()


NO_LINK = {
    'unknown id': [(C_TAG, tci(101))],
    'id that is another without its priority': [(C_TAG, tci(100 + 2048))],
    'outer of a pair alone': [(S_TAG, tci(10))],
    'inner of a pair alone': [(C_TAG, tci(200))],
    'pair swapped': [(S_TAG, tci(100)), (C_TAG, tci(10))],
    'known outer, unknown inner': [(S_TAG, tci(10)), (C_TAG, tci(101))],
    'one that is known, in another': [(S_TAG, tci(100)), (C_TAG, tci(100))],
    'id 4095': [(C_TAG, tci(4095))],
}


@pytest.mark.parametrize('name', NO_LINK)
def test_b63_no_link(tenants, name):
    c = tenants
    c.at(0).inside(tagged(FRAME, *NO_LINK[name]), drop='no-link')
    only(c, 1, None)
    c.replay()


def test_b63_three_tags(tenants):
    c = tenants
    c.at(0).inside(tagged(FRAME, (S_TAG, tci(10)), (C_TAG, tci(100)), (C_TAG, tci(1))),
                   drop='vlan-depth')
    only(c, 1, None)
    c.replay()


@pytest.mark.parametrize('tags', [1, 2])
def test_b63_tag_then_runt(tenants, tags):
    """Every length that ends within the tags."""
    c = tenants
    frame = tagged(FRAME, *[(S_TAG, tci(10)), (C_TAG, tci(100))][:tags])
    for n in range(14, 14 + 4 * tags):
        c.at((n - 14) * .001).inside(frame[:n], drop='runt')
    only(c, 1, None)
    c.replay()


def test_no_peer(case):
    c = case(config='port add in devargs x\nport add out devargs y\nnetns add T1\n'
             'link add alone port in netns T1\n')
    c.at(0).inside(FRAME, drop='no-peer')
    c.replay()
