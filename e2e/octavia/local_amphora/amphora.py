"""Octavia amphora driver: the real HAProxy REST driver with the wire replaced.

Everything up to the HTTPS request to the amphora agent is Octavia's own code: version negotiation, certificates,
the jinja templates, which listener goes where. LocalClient answers what the agent in the VM would answer:
it keeps the files, plugs the VIP into a network namespace and starts or reloads HAProxy there.
"""
import hashlib
import ipaddress
import json
import os
import re
import signal
import subprocess
import sys
import time

from octavia.amphorae.backends.utils import haproxy_query
from octavia.amphorae.backends.utils import ip_advertisement
from octavia.amphorae.drivers.haproxy import rest_api_driver
from octavia.common import constants as consts
from octavia.common import utils
from oslo_config import cfg

from local_amphora import datagrams
from local_amphora import state
from local_amphora import vrrp
from local_amphora.compute import neutron

CONF = cfg.CONF
HAPROXY = os.environ.get('LOCAL_AMPHORA_HAPROXY', '/usr/sbin/haproxy')


def haproxy_version():
    out = subprocess.run([HAPROXY, '-v'], capture_output=True, text=True).stdout
    return re.search(r'version (\S+)', out).group(1)


def peer(amp):
    """The name of an amphora among the peers of HAProxy."""
    return utils.base64_sha1_string(amp.id).rstrip('=')


class LocalClient:
    """The methods of AmphoraAPIClient1_0, on this machine."""

    def __init__(self):
        self.version = haproxy_version()

    # -- identity
    def get_api_version(self, amp, timeout_dict=None, raise_retry_exception=False):
        return {'api_version': '1.0'}

    def get_info(self, amp, raise_retry_exception=False, timeout_dict=None):
        return {'haproxy_version': self.version, 'api_version': '1.0', 'hostname': 'amphora-' + amp.id}

    def get_details(self, amp):
        return {'cpu_count': 1, 'active_tuned_profiles': '', 'active': True, 'haproxy_count': 1,
                'haproxy_version': self.version}

    # -- files
    def _dir(self, amp, *more):
        path = os.path.join(state.amphora_dir(amp.id), *more)
        os.makedirs(path, exist_ok=True)
        return path

    def _localise(self, amp, text):
        """Octavia renders the paths of the VM; keep them per amphora."""
        own = self._dir(amp)
        text = text.replace('%s/%s.sock' % (CONF.haproxy_amphora.base_path, amp.load_balancer_id), self._socket(amp))
        text = text.replace(CONF.haproxy_amphora.base_cert_dir, os.path.join(own, 'certs'))
        text = text.replace(CONF.haproxy_amphora.base_path, own)
        return text

    @staticmethod
    def _socket(amp):
        """HAProxy takes at most 97 characters."""
        os.makedirs(state.SOCKETS, exist_ok=True)
        return os.path.join(state.SOCKETS, amp.id + '.sock')

    def upload_cert_pem(self, amp, loadbalancer_id, pem_filename, pem_file):
        state.fault('upload_cert', amp.id, loadbalancer_id)
        if isinstance(pem_file, str):
            pem_file = pem_file.encode()
        if pem_file.startswith(CONF.haproxy_amphora.base_cert_dir.encode()):      # a crt-list
            pem_file = self._localise(amp, pem_file.decode()).encode()
        with open(os.path.join(self._dir(amp, 'certs', loadbalancer_id), pem_filename), 'wb') as f:
            f.write(pem_file)

    def get_cert_md5sum(self, amp, loadbalancer_id, pem_filename, ignore=()):
        try:
            with open(os.path.join(self._dir(amp, 'certs', loadbalancer_id), pem_filename), 'rb') as f:
                return hashlib.md5(f.read()).hexdigest()
        except OSError:
            return None

    def delete_cert_pem(self, amp, loadbalancer_id, pem_filename):
        try:
            os.remove(os.path.join(self._dir(amp, 'certs', loadbalancer_id), pem_filename))
        except OSError:
            pass

    def update_cert_for_rotation(self, amp, pem_file):
        pass

    def update_agent_config(self, amp, agent_config, timeout_dict=None):
        pass

    # -- network
    def netns(self, amp):
        return 'amp-' + amp.id

    def plug_vip(self, amp, vip, net_info):
        state.fault('plug_vip', amp.id, getattr(amp, 'load_balancer_id', None))
        ns = self.netns(amp)
        network_id = self._network_of(amp, amp.vrrp_port_id)
        state.plug(ns, 'eth1', network_id, mac=net_info['mac_address'], mtu=net_info.get('mtu'))
        self._address(ns, 'eth1', net_info['vrrp_ip'], net_info['subnet_cidr'])
        if not vrrp.is_pair(amp.id):
            self._vips(ns, vip, net_info)
        self._gateway(ns, net_info.get('gateway'))
        for route in net_info.get('host_routes', ()):
            state.run('ip', 'route', 'replace', route['destination'], 'via', route['nexthop'], netns=ns, check=False)
        state.run('ip', 'netns', 'exec', ns, 'sysctl', '-qw', 'net.ipv4.ip_nonlocal_bind=1',
                  'net.ipv6.ip_nonlocal_bind=1', 'net.ipv4.ip_unprivileged_port_start=0', check=False)
        # Without these LVS forwards nothing.
        state.run('sysctl', '-qw', 'net.ipv4.ip_forward=1', netns=ns)
        state.run('sysctl', '-qw', 'net.ipv6.conf.all.forwarding=1', netns=ns, check=False)

    def _vips(self, ns, vip, net_info):
        self._address(ns, 'eth1', vip, net_info['subnet_cidr'], host=True)
        # As the agent does: a neighbour may still know the address by the MAC of a former amphora.
        ip_advertisement.send_ip_advertisement('eth1', vip, ns)
        for extra in net_info.get('additional_vips', ()):
            self._address(ns, 'eth1', extra['ip_address'], extra['subnet_cidr'], host=False)
            self._gateway(ns, extra.get('gateway'))
            ip_advertisement.send_ip_advertisement('eth1', extra['ip_address'], ns)

    def plug_network(self, amp, port):
        state.fault('plug_network', amp.id)
        ns = self.netns(amp)
        network_id = self._network_of_mac(port['mac_address'])
        name = 'e' + hashlib.sha1(port['mac_address'].encode()).hexdigest()[:10]
        state.plug(ns, name, network_id, mac=port['mac_address'], mtu=port.get('mtu'))
        for fixed in port.get('fixed_ips', ()):
            self._address(ns, name, fixed['ip_address'], fixed['subnet_cidr'])

    @staticmethod
    def _address(ns, ifname, address, cidr, host=False):
        net = ipaddress.ip_network(cidr)
        length = net.max_prefixlen if host else net.prefixlen
        extra = ('nodad',) if net.version == 6 else ()
        state.run('ip', 'addr', 'replace', '%s/%d' % (address, length), 'dev', ifname, *extra, netns=ns)

    @staticmethod
    def _gateway(ns, gateway):
        if gateway:
            family = '-6' if ':' in gateway else '-4'
            state.run('ip', family, 'route', 'replace', 'default', 'via', gateway, netns=ns, check=False)

    @staticmethod
    def _network_of(amp, port_id):
        return neutron().get_port(port_id).network_id

    @staticmethod
    def _network_of_mac(mac):
        return next(neutron().ports(mac_address=mac)).network_id

    def get_interface(self, amp, ip_addr, timeout_dict=None, log_error=True):
        return {'interface': 'eth1'}

    def set_interface_rules(self, amp, ip_address, rules, timeout_dict=None):
        pass

    # -- keepalived: see `vrrp`
    def upload_vrrp_config(self, amp, config):
        vrrp.configure(self._dir(amp), config, self._socket(amp))

    def start_vrrp(self, amp, timeout_dict=None):
        vrrp.start(self.netns(amp), self._dir(amp))

    reload_vrrp = start_vrrp

    def stop_vrrp(self, amp):
        vrrp.stop(self._dir(amp))

    # -- HAProxy
    def upload_config(self, amp, loadbalancer_id, config, timeout_dict=None):
        state.fault('upload_config', amp.id, loadbalancer_id)
        own = self._dir(amp)
        os.makedirs(os.path.join(own, loadbalancer_id), exist_ok=True)
        open(os.path.join(own, loadbalancer_id, 'servers-state'), 'a').close()
        with open(os.path.join(own, 'haproxy.cfg.as-rendered'), 'w') as f:
            f.write(config)
        path = os.path.join(own, 'haproxy.cfg')
        with open(path + '.new', 'w') as f:
            f.write(self._localise(amp, config))
        # the agent checks the configuration before it takes it
        check = subprocess.run([HAPROXY, '-c', '-L', peer(amp), '-f', path + '.new'], capture_output=True, text=True, cwd=own)
        if check.returncode:
            raise RuntimeError('haproxy -c: ' + check.stderr)
        os.replace(path + '.new', path)
        if 'prometheus-exporter-internal' in config:
            self._serve_metrics(amp)
        self._describe(amp, loadbalancer_id, self._socket(amp))

    def _serve_metrics(self, amp):
        """Octavia's own prometheus-proxy, a service of the VM: it looks for the one namespace that a VM has."""
        path = os.path.join(self._dir(amp), 'metrics.pid')
        if os.path.exists(path):
            return
        program = ('import sys; from octavia.common import constants; from octavia.cmd import prometheus_proxy; '
                   'constants.AMPHORA_NAMESPACE = sys.argv.pop(); prometheus_proxy.main()')
        with open(os.path.join(state.ROOT, 'prometheus-proxy.log'), 'ab') as log:
            child = subprocess.Popen([sys.executable, '-c', program, self.netns(amp)], stdin=subprocess.DEVNULL,
                                     stdout=log, stderr=log, start_new_session=True)
        with open(path, 'w') as f:
            f.write(str(child.pid))

    def _describe(self, amp, loadbalancer_id, socket):
        """What the heartbeat reads."""
        path = os.path.join(self._dir(amp), 'amphora.json')
        with open(path + '.new', 'w') as f:
            json.dump({'id': amp.id, 'load_balancer_id': loadbalancer_id, 'socket': socket}, f)
        os.replace(path + '.new', path)

    def _pid(self, amp):
        try:
            with open(os.path.join(state.amphora_dir(amp.id), 'haproxy.pid')) as f:
                pid = int(f.read().split()[0])
            os.kill(pid, 0)
            return pid
        except (OSError, ValueError, IndexError):
            return None

    def _haproxy(self, amp, object_id):
        own = self._dir(amp)
        if object_id in state.datagram_listeners(amp.id) or not os.path.exists(os.path.join(own, 'haproxy.cfg')):
            return
        pid = self._pid(amp)
        if pid:
            query = haproxy_query.HAProxyQuery(self._socket(amp))
            query.save_state(os.path.join(own, object_id, 'servers-state'))
            os.kill(pid, signal.SIGUSR2)                          # master-worker reload, as in the amphora
            time.sleep(0.1)
            return
        argv = ['ip', 'netns', 'exec', self.netns(amp), HAPROXY, '-Ws', '-f', 'haproxy.cfg',
                '-L', peer(amp), '-p', 'haproxy.pid']
        with open(os.path.join(state.ROOT, 'haproxy.log'), 'ab') as log:
            # -Ws stays in the foreground; HAProxy must outlive the worker process
            child = subprocess.Popen(argv, cwd=own, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     start_new_session=True)
        with open(os.path.join(own, 'haproxy.pid'), 'w') as f:
            f.write(str(child.pid))
        deadline = time.time() + 5
        while time.time() < deadline and not os.path.exists(self._socket(amp)):
            if child.poll() is not None:
                raise RuntimeError('haproxy ended with %s' % child.returncode)
            time.sleep(0.02)

    def start_listener(self, amp, object_id, timeout_dict=None):
        state.fault('start_listener', amp.id, object_id)
        self._haproxy(amp, object_id)

    def reload_listener(self, amp, object_id, timeout_dict=None):
        state.fault('reload_listener', amp.id, object_id)
        self._haproxy(amp, object_id)

    def delete_listener(self, amp, object_id):
        state.fault('delete_listener', amp.id, object_id)
        lvs = os.path.join(state.amphora_dir(amp.id), 'lvs', object_id)
        if os.path.exists(lvs):
            os.remove(lvs)
            self._forward(amp)
            return
        pid = self._pid(amp)
        if pid:
            os.kill(pid, signal.SIGTERM)
        for path in ('haproxy.pid', 'haproxy.cfg', self._socket(amp)):
            try:
                os.remove(os.path.join(state.amphora_dir(amp.id), path))
            except OSError:
                pass

    # -- UDP and SCTP (keepalived with LVS in the VM): see `datagrams`
    def upload_udp_config(self, amp, listener_id, config, timeout_dict=None):
        state.fault('upload_udp_config', amp.id, listener_id)
        with open(os.path.join(self._dir(amp, 'lvs'), listener_id), 'w') as f:
            f.write(config)
        if not os.path.exists(os.path.join(self._dir(amp), 'amphora.json')):
            self._describe(amp, amp.load_balancer_id, None)
        self._forward(amp)

    def _forward(self, amp):
        texts = []
        for listener_id in state.datagram_listeners(amp.id):
            with open(os.path.join(self._dir(amp, 'lvs'), listener_id)) as f:
                texts.append(f.read())
        datagrams.forward(self.netns(amp), texts)


class LocalHaproxyDriver(rest_api_driver.HaproxyAmphoraLoadBalancerDriver):
    def __init__(self):
        super().__init__()
        client = LocalClient()
        self.clients = {'base': client, '1.0': client}

    def get_info(self, amphora, raise_retry_exception=False, timeout_dict=None):
        state.fault('get_info', amphora.id)
        return super().get_info(amphora, raise_retry_exception, timeout_dict)

    def post_vip_plug(self, amphora, load_balancer, *args, **kwargs):
        if load_balancer.topology == consts.TOPOLOGY_ACTIVE_STANDBY:
            vrrp.mark_pair(amphora.id)
        super().post_vip_plug(amphora, load_balancer, *args, **kwargs)
