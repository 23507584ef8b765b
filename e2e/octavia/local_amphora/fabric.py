"""What Neutron's agents would do, on this machine: routers with floating IPs, and the security groups of VIPs.

Reads Neutron (as admin) whenever something has changed there, and keeps
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

import openstack
import pymysql

from local_amphora import state

done = {}


def nft(netns, rules):
    if done.get(netns) == rules:
        return
    p = subprocess.run(['ip', 'netns', 'exec', netns, 'nft', '-f', '-'], input=rules, capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(p.stderr + rules)
    done[netns] = rules


def router(n, r, ports, subnets, fips):
    ns = 'qrouter-' + r.id
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
        want = {'%s/%d' % (f['ip_address'], ipaddress.ip_network(subnets[f['subnet_id']].cidr).prefixlen) for f in p.fixed_ips}
        if outer:
            gateway = (name, p.fixed_ips[0]['ip_address'])
            want |= {f.floating_ip_address + '/32' for f in fips if f.port_id}
        key = (ns, name)
        have = done.get(key, set()) if not fresh else set()
        for a in want - have:
            state.run('ip', 'addr', 'replace', a, 'dev', name, netns=ns)
        for a in have - want:
            state.run('ip', 'addr', 'del', a, 'dev', name, netns=ns, check=False)
        done[key] = want
    for route in r.routes or ():
        state.run('ip', 'route', 'replace', route['destination'], 'via', route['nexthop'], netns=ns, check=False)
    pre = post = ''
    for f in fips:
        if f.port_id and gateway:
            pre += '    ip daddr %s dnat to %s\n' % (f.floating_ip_address, f.fixed_ip_address)
            post += '    oifname "%s" ip saddr %s snat to %s\n' % (gateway[0], f.fixed_ip_address, f.floating_ip_address)
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


def sync(n):
    subnets = {s.id: s for s in n.subnets()}
    fips = list(n.ips())
    routers = {r.id: r for r in n.routers()}
    ports = list(n.ports())
    for r in routers.values():
        router(n, r, [p for p in ports if p.device_id == r.id], subnets, [f for f in fips if f.router_id == r.id])
    for name in os.listdir('/run/netns'):
        if name.startswith('qrouter-') and name[8:] not in routers:
            state.run('ip', 'netns', 'del', name, check=False)
    groups = {g.id: g.security_group_rules for g in n.security_groups()}
    members = {}
    for p in ports:
        for g in p.security_group_ids or ():
            pairs = [pair['ip_address'] for pair in p.allowed_address_pairs or ()]
            members.setdefault(g, set()).update([f['ip_address'] for f in p.fixed_ips] + pairs)
    for p in ports:
        ns, trusted = filtered(p)
        if ns and os.path.exists('/run/netns/' + ns):
            nft(ns, group_rules(p, groups, members, trusted))


class Changes:
    """Tells cheaply whether a look at Neutron would show something new.

    Every object of Neutron has a row of standard attributes, whose revision grows with each change. Its API takes tens
    of milliseconds of a processor for each list, which a machine with two of them has better use for.
    """
    QUESTION = 'SELECT COUNT(*), MAX(id), SUM(revision_number) FROM standardattributes'

    def __init__(self):
        self.database = pymysql.connect(host='127.0.0.1', user='e2e', password='e2e', database='neutron', autocommit=True)
        self.seen = None

    def since_last(self):
        with self.database.cursor() as cursor:
            cursor.execute(self.QUESTION)
            # The namespace of an amphora comes after its port.
            now = cursor.fetchone(), sorted(os.listdir('/run/netns'))
        changed, self.seen = now != self.seen, now
        return changed

    def forget(self):
        self.seen = None


def main():
    cloud = openstack.connect(cloud='admin')
    interval = float(sys.argv[1]) if len(sys.argv) > 1 else 0.2
    changes = Changes()
    while True:
        try:
            if changes.since_last():
                sync(cloud.network)
                # Changes come in rows.
                time.sleep(interval)
        except Exception:
            traceback.print_exc()
            changes.forget()
        time.sleep(interval)
