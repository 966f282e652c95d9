"""By which addresses a machine, and a container on it, is known."""

import ipaddress
import socket
from pathlib import Path

import psutil

from oomwatch import wire
from oomwatch_agent.who.addresses import addresses_here, addresses_of, own_addresses, usable

# As the kernel writes it, of a container with one card.
FIB_TRIE = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.244.1.0/24 2 0 2
        |-- 10.244.1.0
           /24 link UNICAST
        |-- 10.244.1.7
           /32 host LOCAL
        |-- 10.244.1.255
           /32 link BROADCAST
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
"""
IF_INET6 = """00000000000000000000000000000001 01 80 10 80       lo
fe800000000000000042acfffe110002 22 40 20 80     eth0
20010db8000000000000000000000007 22 40 00 80     eth0
"""


def test_a_container_is_known_by_the_addresses_of_its_network(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net/fib_trie").write_text(FIB_TRIE)
    (tmp_path / "net/if_inet6").write_text(IF_INET6)
    assert addresses_of(tmp_path) == ("10.244.1.7", "2001:db8::7")


def test_a_process_that_is_gone_has_none(tmp_path: Path) -> None:
    assert addresses_of(tmp_path / "4711") == ()


def test_this_machine_is_known_by_no_address_that_every_machine_has() -> None:
    told = [ipaddress.ip_address(address) for address in own_addresses()]
    assert not any(address.is_loopback or address.is_link_local for address in told)


def test_every_card_of_this_machine_is_known_with_its_addresses() -> None:
    families = (socket.AF_INET, socket.AF_INET6)
    cards = psutil.net_if_addrs().items()
    theirs = {(name, one.address.partition("%")[0]) for name, told in cards for one in told if one.family in families}
    assert set(addresses_here()) == theirs


def test_the_addresses_of_this_process_network_are_those_of_the_machine() -> None:
    assert set(addresses_of(Path("/proc/self"))) <= set(own_addresses())


def test_no_more_are_told_than_the_protocol_allows() -> None:
    assert len(usable(f"10.0.{index // 256}.{index % 256}" for index in range(1000))) == wire.ADDRESSES_MAX
