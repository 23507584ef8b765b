"""Sends each amphora's health message to octavia-health-manager, from the real HAProxy's statistics."""
import json
import os
import re
import socket
import sys
import time

from octavia.amphorae.backends.health_daemon import status_message
from octavia.amphorae.backends.utils import haproxy_query

from local_amphora import state

METRICS = ('bin', 'bout', 'ereq', 'stot')


def message(about, seq, last):
    listeners, pools = {}, {}
    if about.get('socket') and os.path.exists(about['socket']):
        query = haproxy_query.HAProxyQuery(about['socket'])
        for row in query.show_stat():
            if row['svname'] != 'FRONTEND':
                continue
            before = last.setdefault(row['pxname'], {})
            delta = {}
            for m in METRICS:
                now = int(row[m] or 0)
                delta[m] = now - before.get(m, 0) if now >= before.get(m, 0) else now
                before[m] = now
            listeners[row['pxname']] = {'status': row['status'], 'stats': {
                'tx': delta['bout'], 'rx': delta['bin'], 'conns': int(row['scur'] or 0),
                'totconns': delta['stot'], 'ereq': delta['ereq']}}
        for pool_id, pool in query.get_pool_status().items():
            pools[pool_id] = {'status': pool['status'], 'members': pool['members']}
    for listener_id in state.datagram_listeners(about['id']):
        listeners[listener_id] = {'status': 'OPEN', 'stats': {
            'tx': 0, 'rx': 0, 'conns': 0, 'totconns': 0, 'ereq': 0}}
        with open(os.path.join(state.amphora_dir(about['id']), 'lvs', listener_id)) as f:
            text = f.read()
        found = re.search(r'Configuration for Pool (\S+)', text)
        if found:
            members = re.findall(r'Configuration for Member (\S+)', text)
            pools['%s:%s' % (found.group(1), listener_id)] = {
                'status': 'UP', 'members': {m: 'UP' for m in members}}
    return {'id': about['id'], 'seq': seq, 'listeners': listeners, 'pools': pools, 'ver': 3}


def main():
    host, port, key, interval = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    seq, last = 0, {}
    root = os.path.join(state.ROOT, 'amphorae')
    while True:
        for amphora_id in os.listdir(root) if os.path.isdir(root) else ():
            path = os.path.join(root, amphora_id, 'amphora.json')
            try:
                if os.path.exists(path):
                    with open(path) as f:
                        about = json.load(f)
                else:
                    about = {'id': amphora_id}
                seq += 1
                sock.sendto(status_message.wrap_envelope(message(about, seq, last), key), (host, port))
            except Exception as error:                       # an amphora on its way in or out
                print('%s: %r' % (amphora_id, error), file=sys.stderr, flush=True)
        time.sleep(interval)
