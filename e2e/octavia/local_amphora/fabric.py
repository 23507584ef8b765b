"""What Neutron's agents would do, on this machine: routers with floating IPs, and the security groups of VIPs.

Reads Neutron's database whenever something has changed there, and keeps
  qrouter-<id>   a namespace for each router: its interfaces, its gateway, one DNAT/SNAT pair for each floating IP
  amp-<id>, and namespaces of machines (ports of `compute:` owners, by name)
                 nftables rules from the security groups of the port: allowed_cidrs end up there, and what nodes let in.
                 Incoming packets only; without address spoofing checks
External networks are bridges in the fabric namespace like all others: plug a "client on the internet" with `state.plug`.
"""
import ipaddress
import os
import subprocess
import sys
import time
import traceback

from local_amphora import state
from local_amphora.neutron import Database

done = {}


def nft(netns, rules):
    if done.get(netns) == rules:
        return
    p = subprocess.run(['ip', 'netns', 'exec', netns, 'nft', '-f', '-'], input=rules, capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(p.stderr + rules)
    done[netns] = rules


def router(router_id, routes, ports, subnets, fips):
    ns = 'qrouter-' + router_id
    fresh = not os.path.exists('/run/netns/' + ns)
    state.ensure_netns(ns)
    if fresh:
        done.pop(ns, None)
        state.run('sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1',
                  'net.ipv4.conf.all.rp_filter=0', netns=ns)
    gateway = None
    for p in ports:
        outer = p.device_owner == 'network:router_gateway'
        name = ('qg-' if outer else 'qr-') + p.id[:11]
        state.plug(ns, name, p.network_id, mac=p.mac_address)
        want = {'%s/%d' % (address, ipaddress.ip_network(subnets[subnet]).prefixlen) for address, subnet in p.fixed_ips}
        if outer:
            gateway = (name, p.fixed_ips[0][0])
            want |= {f['floating_ip_address'] + '/32' for f in fips if f['fixed_port_id']}
        key = (ns, name)
        have = done.get(key, set()) if not fresh else set()
        for a in want - have:
            state.run('ip', 'addr', 'replace', a, 'dev', name, netns=ns)
        for a in have - want:
            state.run('ip', 'addr', 'del', a, 'dev', name, netns=ns, check=False)
        done[key] = want
    for destination, next_hop in routes:
        state.run('ip', 'route', 'replace', destination, 'via', next_hop, netns=ns, check=False)
    pre = post = ''
    for f in fips:
        if f['fixed_port_id'] and gateway:
            outer, inner = f['floating_ip_address'], f['fixed_ip_address']
            pre += '    ip daddr %s dnat to %s\n' % (outer, inner)
            post += '    oifname "%s" ip saddr %s snat to %s\n' % (gateway[0], inner, outer)
    if gateway:
        # As the L3 agent does: out to the world with the router's address, and a connection from inside to a
        # floating IP comes back in with the router's own external address as its source.
        post += '    oifname "%s" snat to %s\n' % gateway
        post += '    iifname != "%s" ct status dnat snat to %s\n' % gateway
    nft(ns, 'table ip nat\ndelete table ip nat\ntable ip nat {\n  chain pre { type nat hook prerouting priority -100;\n' + pre
        + '  }\n  chain post { type nat hook postrouting priority 100;\n' + post + '  }\n}\n')


def sources(rule, members):
    """The beginning of a rule for each origin that a rule of Neutron names."""
    family = 'ip' if rule['ethertype'] == 'IPv4' else 'ip6'
    if rule.get('remote_group_id'):
        return ['%s saddr %s ' % (family, address) for address in sorted(members.get(rule['remote_group_id'], ()))
                if (':' in address) == (family == 'ip6')]
    if rule.get('remote_ip_prefix'):
        return ['%s saddr %s ' % (family, rule['remote_ip_prefix'])]
    return ['meta nfproto %s ' % rule['ethertype'].lower()]


def group_rules(port, groups, members, trusted):
    """Before any translation of addresses: neither NodePorts nor datagrams that are forwarded pass `input` unchanged."""
    text = ''
    for rule in (rule for g in port.security_group_ids for rule in groups.get(g, ())):
        if rule['direction'] != 'ingress':
            continue
        match = ''
        if rule.get('protocol') in ('tcp', 'udp', 'sctp') and rule.get('port_range_min'):
            match = '%s dport %d-%d ' % (rule['protocol'], rule['port_range_min'], rule['port_range_max'])
        elif rule.get('protocol'):
            match = 'meta l4proto %s ' % rule['protocol']
        text += ''.join('    %s%saccept\n' % (source, match) for source in sources(rule, members))
    if not port.is_port_security_enabled:
        text = '    accept\n'
    return ('table inet sg\ndelete table inet sg\ntable inet sg {\n'
            '  chain in { type filter hook prerouting priority -150; policy drop;\n    iifname ' + trusted + ' accept\n'
            '    ct state established,related accept\n    meta l4proto { icmp, ipv6-icmp } accept\n' + text + '  }\n}\n')


def filtered(port):
    """The namespace behind a port, and which of its interfaces are not in Neutron."""
    if port.name.startswith('octavia-lb-vrrp-'):
        return 'amp-' + port.name[len('octavia-lb-vrrp-'):], '"lo"'
    if port.device_owner.startswith('compute:'):
        return port.name, '!= "eth0"'
    return None, None


def sync(network):
    for router_id, routes in network.routers.items():
        router(router_id, routes, [p for p in network.ports if p.device_id == router_id], network.subnets,
               [f for f in network.floating_ips if f['router_id'] == router_id])
    for name in os.listdir('/run/netns'):
        if name.startswith('qrouter-') and name[8:] not in network.routers:
            state.run('ip', 'netns', 'del', name, check=False)
    members = {}
    for p in network.ports:
        for g in p.security_group_ids:
            members.setdefault(g, set()).update([address for address, _ in p.fixed_ips] + p.address_pairs)
    for p in network.ports:
        ns, trusted = filtered(p)
        if ns and os.path.exists('/run/netns/' + ns):
            nft(ns, group_rules(p, network.security_groups, members, trusted))


def main():
    interval = float(sys.argv[1]) if len(sys.argv) > 1 else 0.2
    database, seen = Database(), None
    while True:
        try:
            # The namespace of an amphora comes after its port.
            now = database.state(), sorted(os.listdir('/run/netns'))
            if now != seen:
                sync(database.read())
                seen = now
        except Exception:
            traceback.print_exc()
            seen = None
        time.sleep(interval)
