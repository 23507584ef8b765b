"""What a newer OCCM has is found in its sources, its chart and its help."""

import tempfile
import unittest
import unittest.mock
from pathlib import Path

import framework
import occm
import occm_sources

HELP = """
Generic flags:

      --controllers strings                      A list of controllers to enable. (default [*])
      --feature-gates mapStringBool              A set of key=value pairs. Options are:
                                                 APIServerIdentity=true|false (BETA - default=true)
                                                 kube:WatchListClient=true|false (BETA - default=false)
      --leader-elect                             Start a leader election client. (default true)
  -v, --v Level                                  number for the log level verbosity
      --tls-cert-file string                     File with the certificate. (use "x,x" for SNI)
"""
VALUES = """# about
securityContext: {}   # none
cluster:
  name: kubernetes
nodeSelector:
  # comment
  node-role.kubernetes.io/control-plane: ""
"""
ROLE = """kind: ClusterRole
rules:
- apiGroups:
  - ""
  resources:
  - nodes
  verbs:
  - get
  - patch
{{- if .Values.more }}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [a]
  verbs: [update]
{{- end }}
---
kind: ClusterRoleBinding
subjects:
- kind: ServiceAccount
"""
GO = """
const (
    Class = "loadbalancer.openstack.org/class"
    eventRename = "LoadBalancerRename"
)
type Options struct {
    SubnetID string `gcfg:"subnet-id,omitempty"`
    Username string `name:"os-userName" value:"optional"`
}
"""


def checkout(folder: str, files: dict[str, str]) -> Path:
    chart = f"{occm.CHART}"
    contents = {
        "pkg/openstack/all.go": GO,
        "pkg/openstack/all_test.go": '"loadbalancer.openstack.org/only-in-a-test"',
        f"{chart}/values.yaml": VALUES,
        f"{chart}/templates/role.yaml": ROLE,
        f"{chart}/templates/_helpers.tpl": "{{ .Values.cluster.name }}",
    }
    for path, text in (contents | files).items():
        (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
        (Path(folder) / path).write_text(text)
    return Path(folder)


class Facts(unittest.TestCase):
    def test_the_help_names_flags_with_form_and_default_and_gates(self):
        flags, gates = occm.from_help(HELP)
        self.assertEqual(
            flags,
            {"controllers": "strings=[*]", "feature-gates": "mapStringBool", "leader-elect": "bool=true", "v": "Level", "tls-cert-file": "string"},
        )
        self.assertEqual(list(gates), ["APIServerIdentity", "WatchListClient"])

    def test_sources_and_chart_are_read_by_kind(self):
        with tempfile.TemporaryDirectory() as folder:
            found = occm.facts(checkout(folder, {}), None)
        self.assertEqual(list(found["annotations"]), ["loadbalancer.openstack.org/class"])
        self.assertEqual(list(found["keys"]), ["subnet-id", "username"])
        self.assertEqual(list(found["events"]), ["LoadBalancerRename"])
        self.assertEqual(found["values"]["securityContext"], "{}")
        self.assertEqual(found["values"]["nodeSelector"], 'node-role.kubernetes.io/control-plane: ""')
        self.assertIn("cluster.name", found["values"])
        self.assertEqual(
            list(found["rights"]),
            ["ClusterRole leases.coordination.k8s.io update of a", "ClusterRole nodes get", "ClusterRole nodes patch"],
        )
        self.assertNotIn("flags", found)


class Comparison(unittest.TestCase):
    def differences(self, files: dict[str, str]) -> list[str]:
        with tempfile.TemporaryDirectory() as old, tempfile.TemporaryDirectory() as new:
            releases = {"1.36": {"tag": "v1.36.0", "chart": "2.36.0"}}
            data = occm.json.loads(occm.text_of(releases, {"1.36": occm.facts(checkout(old, {}), None)}))
            announced = {"annotations": {"loadbalancer.openstack.org/new": {"thread": "https://example.org/1"}}}
            return occm.differences(data, announced, occm.facts(checkout(new, files), None))

    def test_the_same_sources_have_nothing_new(self):
        self.assertEqual(self.differences({}), ["flags: not compared, as no program was built", "gates: not compared, as no program was built"])

    def test_what_is_new_changed_or_gone_is_named(self):
        lines = self.differences(
            {
                "pkg/openstack/all.go": GO.replace("eventRename", "eventOther").replace("LoadBalancerRename", "LoadBalancerMoved")
                + 'New = "loadbalancer.openstack.org/new"',
                f"{occm.CHART}/values.yaml": VALUES.replace("securityContext: {}", "securityContext:\n  runAsNonRoot: true"),
                f"{occm.CHART}/templates/role.yaml": ROLE.replace("  - patch", "  - delete"),
            }
        )
        for line in (
            "annotations: new: loadbalancer.openstack.org/new (announced in https://example.org/1)",
            "events: new: LoadBalancerMoved",
            "events: gone: LoadBalancerRename",
            "values: changed: securityContext: {} -> runAsNonRoot: true",
            "rights: new: ClusterRole nodes delete",
            "rights: gone: ClusterRole nodes patch",
        ):
            self.assertIn(line, lines)

    def test_the_newest_program_of_a_minor_version_is_asked(self):
        with tempfile.TemporaryDirectory() as name:
            for tag in ("v1.31.2", "v1.31.10", "v1.3.20"):
                (Path(name) / f"{occm.PROGRAM}-{tag}").touch()
            self.assertEqual(occm.newest_program(Path(name), "1.31"), ("v1.31.10", Path(name) / f"{occm.PROGRAM}-v1.31.10"))
            self.assertIsNone(occm.newest_program(Path(name), "1.32"))

    def test_releases_that_follow_each_other_are_one_span(self):
        order = ["1.30", "1.31", "1.32", "1.33"]
        self.assertEqual(occm.spans(["1.30", "1.31", "1.33"], order), "1.30-1.31,1.33")

    def test_a_release_has_several_patches_the_newest_first(self):
        tags = "v1.29.0\nv1.31.2\nv1.31.10\nv1.30.0\nv1.31.0-rc.1\nchart-2.30.0"
        with unittest.mock.patch.object(occm, "git", lambda *_: tags):
            self.assertEqual(occm.patches(Path()), {"1.30": ["v1.30.0"], "1.31": ["v1.31.10", "v1.31.2"]})


GATES = """
const (
	// owner: somebody
	FromVersion featuregate.Feature = "FromVersion"
	Later featuregate.Feature = "Later"
	Done = featuregate.Feature("Done")
	Plain = "Plain"
)
func gates() map[featuregate.Feature]featuregate.VersionedSpecs {
	return map[featuregate.Feature]featuregate.VersionedSpecs{
		FromVersion: {
			{Version: version.MustParse("1.30"), Default: false, PreRelease: featuregate.Alpha},
			{Version: version.MustParse("1.35"), Default: true, PreRelease: featuregate.GA}, // locked
		},
	}
}
var more = map[featuregate.Feature]featuregate.FeatureSpec{
	features.Later: {
		{Version: version.MustParse("1.36"), Default: false, PreRelease: featuregate.Alpha},
	},
	Done: {Default: true, PreRelease: featuregate.GA},
	Plain: {Default: false, PreRelease: Beta},
}
"""
OPTIONS = """
	fs.StringSliceVar(&s.Names, "uid-headers", s.Names, "names")
	fs.Var(cliflag.NewMap(&o.Map,
		","), "new-flag", "a map")
"""


class Sources(unittest.TestCase):
    """What a program would say that nobody built."""

    PACKAGES = {"k8s.io/kubernetes/pkg/features": GATES, "k8s.io/cloud-provider/options": OPTIONS}

    def test_gates_are_those_that_are_alpha_or_beta_in_the_version(self):
        self.assertEqual(occm_sources.gates(self.PACKAGES, 34), ["AllAlpha", "AllBeta", "FromVersion", "Plain"])
        self.assertEqual(occm_sources.gates(self.PACKAGES, 36), ["AllAlpha", "AllBeta", "Later", "Plain"])

    def test_a_flag_of_only_one_neighbour_is_looked_for(self):
        before = {"v": "Level", "gone": "bool"}
        after = {"v": "Level", "uid-headers": "strings", "later": "int"}
        self.assertEqual(occm_sources.flags(self.PACKAGES, before, after), {"v": "Level", "uid-headers": "strings"})


FRAMEWORK = {
    "cloud-provider/options/options.go": '''
package options
type Options struct { SecureServing *apiserveroptions.ServingOptions }
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.Syncs, "concurrent-syncs", o.Syncs, "how many")
	genericfs.Var(cliflag.NewMap(&o.Map,
		","), "map", "a map")
	fs.MarkDeprecated("gone", "not a flag")
}''',
    "apiserver/pkg/server/options/serving.go": 'type ServingOptions struct {}\nfunc f() { fs.BoolVar(&s.Http2, "disable-http2", false, "off") }',
    "apiserver/pkg/server/options/etcd.go": 'type EtcdOptions struct {}\nfunc f() { fs.StringVar(&s.Servers, "etcd-servers", "", "") }',
    "cloud-provider/controllers/node/metrics.go": '''
const subsystem = "node_controller"
var a = metrics.NewHistogram(&metrics.HistogramOpts{
	Subsystem: subsystem,
	Name:      "delay_seconds",
})
func copied(o *CounterOpts) { CounterOpts{Name: o.Name} }''',
    "controller-manager/pkg/features/kube_features.go": GATES,
    "component-base/doc.go": "",
}


class Framework(unittest.TestCase):
    """What OCCM's next release will have."""

    def found(self, files: dict[str, str]) -> dict[str, dict[str, str]]:
        with tempfile.TemporaryDirectory() as name:
            for path, text in files.items():
                (Path(name) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(name) / path).write_text(text)
            return framework.facts({module: Path(name) / module for module in framework.MODULES}, 36)

    def test_flags_gates_and_metrics_of_a_controller_manager_are_found(self):
        found = self.found(FRAMEWORK)
        self.assertEqual(found["flags"], {"concurrent-syncs": "int32", "disable-http2": "bool", "map": "value"})
        self.assertEqual(list(found["gates"]), ["AllAlpha", "AllBeta", "Later", "Plain"])
        self.assertEqual(list(found["metrics"]), ["node_controller_delay_seconds"])

    def test_an_invented_flag_is_new_and_one_that_went_is_gone(self):
        data = occm.json.loads(framework.text_of("v0.36.0", self.found(FRAMEWORK)))
        options = FRAMEWORK["cloud-provider/options/options.go"].replace('Int32Var(&o.Syncs, "concurrent-syncs"', 'BoolVar(&o.New, "invented"')
        lines = framework.differences(data, self.found(FRAMEWORK | {"cloud-provider/options/options.go": options}))
        self.assertEqual(lines, ["flags: new: invented = bool", "flags: gone: concurrent-syncs"])
        self.assertEqual(framework.differences(data, self.found(FRAMEWORK)), [])


if __name__ == "__main__":
    unittest.main()
