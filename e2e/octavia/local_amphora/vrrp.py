"""keepalived of a pair of amphorae (ACTIVE_STANDBY): the real one, in the namespace of the amphora, with the configuration that Octavia renders.

It gives the VIP to one of the two, as in the VM: to the one with the higher priority whose HAProxy runs.
"""
import os
import signal
import subprocess
import sys

from octavia.amphorae.backends.agent.api_server import util

from local_amphora import state

KEEPALIVED = os.environ.get('LOCAL_AMPHORA_KEEPALIVED', '/usr/sbin/keepalived')


def mark_pair(amphora_id):
    """The VIP is keepalived's, and not to be plugged in."""
    os.makedirs(state.amphora_dir(amphora_id), exist_ok=True)
    open(os.path.join(state.amphora_dir(amphora_id), 'pair'), 'w').close()


def is_pair(amphora_id):
    return os.path.exists(os.path.join(state.amphora_dir(amphora_id), 'pair'))


def configure(directory, config, socket):
    """As in the VM, a script asks whether HAProxy takes connections at its socket; its process may have ended and still have a number."""
    script = os.path.join(directory, 'check_script')
    with open(script, 'w') as f:
        f.write('#!%s -S\nimport socket\nasked = socket.socket(socket.AF_UNIX)\nasked.settimeout(2)\nasked.connect(%r)\n'
                % (sys.executable, socket))
    os.chmod(script, 0o755)
    with open(os.path.join(directory, 'keepalived.conf'), 'w') as f:
        f.write('global_defs {\n    script_user root\n}\n' + config.replace(util.keepalived_check_script_path(), script))


def _pid(directory):
    try:
        with open(os.path.join(directory, 'keepalived.pid')) as f:
            pid = int(f.read())
        os.kill(pid, 0)
        return pid
    except (OSError, ValueError):
        return None


def start(netns, directory):
    """Starts it, or has it read its configuration anew."""
    pid = _pid(directory)
    if pid:
        os.kill(pid, signal.SIGHUP)
        return
    argv = ['ip', 'netns', 'exec', netns, KEEPALIVED, '--vrrp', '--dont-fork', '--log-console', '--no-syslog',
            '--use-file', os.path.join(directory, 'keepalived.conf'), '--pid', os.path.join(directory, 'keepalived.pid'),
            '--vrrp_pid', os.path.join(directory, 'vrrp.pid')]
    with open(os.path.join(directory, 'keepalived.log'), 'ab') as log:
        subprocess.Popen(argv, cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def stop(directory):
    pid = _pid(directory)
    if pid:
        os.kill(pid, signal.SIGTERM)
