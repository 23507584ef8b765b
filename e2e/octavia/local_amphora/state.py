"""Where the drivers keep their files, and the fault switch.

$LOCAL_AMPHORA_STATE/
  amphorae/<amphora id>/   haproxy.cfg, pid, stats socket, certificates, amphora.json
  faults.json              optional; see `fault`
  calls.log                one line per call made to an amphora or to compute
"""
import hashlib
import json
import os
import subprocess
import time

ROOT = os.environ.get('LOCAL_AMPHORA_STATE', '/var/lib/local-amphora')
SOCKETS = os.environ.get('LOCAL_AMPHORA_SOCKETS', '/run/local-amphora')


def amphora_dir(amphora_id):
    return os.path.join(ROOT, 'amphorae', amphora_id)


def datagram_listeners(amphora_id):
    """Ids of the listeners that LVS would serve: each has a file with its configuration."""
    directory = os.path.join(amphora_dir(amphora_id), 'lvs')
    return sorted(os.listdir(directory)) if os.path.isdir(directory) else []


def log_call(line):
    os.makedirs(ROOT, exist_ok=True)
    with open(os.path.join(ROOT, 'calls.log'), 'a') as f:
        f.write('%.3f %s\n' % (time.time(), line))


def fault(operation, *ids):
    """Sleep and/or raise as faults.json says.

    A list of rules; the first rule that matches acts:
      {"operation": "reload_listener",   # or "*"
       "id": "<load balancer, amphora or listener id>",   # optional
       "sleep": 30,                      # seconds; the LB stays PENDING_* meanwhile
       "hold": true,                     # wait until the rule is gone from the file
       "raise": "no capacity",           # then fail: the LB goes to ERROR
       "times": 2}                       # optional: how often the rule acts
    """
    log_call(' '.join((operation,) + tuple(str(i) for i in ids)))
    path = os.path.join(ROOT, 'faults.json')

    def rules():
        try:
            with open(path) as f:
                return json.load(f)
        except (OSError, ValueError):
            return []

    def match(rule):
        return (rule.get('operation', '*') in ('*', operation)
                and (not rule.get('id') or rule['id'] in ids)
                and rule.get('times', 1) > 0)

    found = next((r for r in rules() if match(r)), None)
    if not found:
        return
    if 'times' in found:
        all_rules = rules()
        for r in all_rules:
            if r == found:
                r['times'] -= 1
                break
        with open(path + '.new', 'w') as f:
            json.dump(all_rules, f)
        os.replace(path + '.new', path)
    time.sleep(found.get('sleep', 0))
    while found.get('hold') and any(match(r) for r in rules()):
        time.sleep(0.2)
    if found.get('raise'):
        raise RuntimeError('injected fault: %s' % found['raise'])


def run(*argv, check=True, netns=None):
    argv = (('ip', 'netns', 'exec', netns) if netns else ()) + argv
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30)
    if check and done.returncode:
        raise RuntimeError('%s: %s' % (' '.join(argv), done.stderr.strip() or done.stdout.strip()))
    return done.stdout


# --- the fabric: one Linux bridge per Neutron network, all in one namespace ---
FABRIC = os.environ.get('LOCAL_AMPHORA_FABRIC', 'fabric')


def ensure_netns(name):
    if not os.path.exists('/run/netns/' + name):
        run('ip', 'netns', 'add', name)
        run('ip', 'link', 'set', 'lo', 'up', netns=name)


def bridge_name(network_id):
    return 'n' + network_id[:12].replace('-', '')


def ensure_bridge(network_id):
    ensure_netns(FABRIC)
    name = bridge_name(network_id)
    if name not in run('ip', '-br', 'link', 'show', netns=FABRIC):
        run('ip', 'link', 'add', name, 'type', 'bridge', netns=FABRIC)
        run('ip', 'link', 'set', name, 'up', netns=FABRIC)
    return name


def plug(netns, ifname, network_id, mac=None, mtu=None):
    """Connect `netns` to a Neutron network's bridge with a veth pair."""
    ensure_netns(netns)
    if ifname in run('ip', '-br', 'link', 'show', netns=netns):
        return
    bridge = ensure_bridge(network_id)
    peer = 'v' + hashlib.sha1((netns + ifname).encode()).hexdigest()[:12]
    run('ip', 'link', 'add', peer, 'netns', FABRIC, 'type', 'veth',
        'peer', 'name', ifname, 'netns', netns)
    run('ip', 'link', 'set', peer, 'master', bridge, 'up', netns=FABRIC)
    if mac:
        run('ip', 'link', 'set', ifname, 'address', mac, netns=netns)
    if mtu:
        run('ip', 'link', 'set', ifname, 'mtu', str(mtu), netns=netns)
    run('ip', 'link', 'set', ifname, 'up', netns=netns)
