"""Stands in for keepalived with LVS, which is a module of the kernel: forwards datagrams as Octavia's configuration says.

In an amphora LVS puts a member's address into each packet (`lb_kind NAT`), and Octavia's lvs-masquerade.sh the amphora's own
as its source. Here nftables does both, from the same file: virtual servers, members, whether a member has weight 0. Members
take turns by connection of conntrack. Left out: algorithms, persistence, other weights, checks of members.
"""
import re
import subprocess


def virtual_servers(text):
    """Protocol, addresses with ports, members with ports, for each virtual server of a keepalived configuration."""
    groups = {name: [tuple(line.split()) for line in body.strip().splitlines()]
              for name, body in re.findall(r'virtual_server_group (\S+) \{([^}]*)\}', text)}
    for block in text.split('virtual_server group ')[1:]:
        name = block.split()[0]
        protocol = re.search(r'protocol (\S+)', block).group(1).lower()
        members = re.findall(r'real_server (\S+) (\d+) \{\s*weight (\d+)', block)
        yield protocol, groups[name], [(address, port) for address, port, weight in members if weight != '0']


def rules(texts):
    """The tables that forward what these configurations say."""
    chains = {'ip': '', 'ip6': ''}
    for text in texts:
        for protocol, vips, members in virtual_servers(text):
            for address, port in vips:
                family = 'ip6' if ':' in address else 'ip'
                arrived = '    %s daddr %s %s dport %s ' % (family, address, protocol, port)
                turns = ', '.join('%d : %s . %s' % (turn, *member) for turn, member in enumerate(members))
                chains[family] += arrived + ('dnat %s to numgen inc mod %d map { %s }\n' % (family, len(members), turns)
                                             if members else 'drop\n')
    return ''.join(
        'table {0} lvs\ndelete table {0} lvs\ntable {0} lvs {{\n'
        '  chain pre {{ type nat hook prerouting priority -100;\n{1}  }}\n'
        '  chain post {{ type nat hook postrouting priority 100;\n    ct status dnat masquerade\n  }}\n}}\n'
        .format(family, chain) for family, chain in chains.items())


def forward(netns, texts):
    done = subprocess.run(['ip', 'netns', 'exec', netns, 'nft', '-f', '-'], input=rules(texts), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr + rules(texts))
