// The load balancer controller of another cloud: the service controller of k8s.io/cloud-provider, as every cloud's own
// controller vendors it, over the module's fake cloud. Only what the fake cloud publishes is made to measure: the address of
// a load balancer that is there, in the form of one cloud or another, both from annotations of the Service.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/controllers/service"
	"k8s.io/cloud-provider/fake"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
	"k8s.io/controller-manager/pkg/features"
	"k8s.io/klog/v2"
)

// What cloud-controller-manager gives its informers by default, at least. The service controller asks for a resync every
// 30 s, and gets it only from informers that resync at all.
const resync = 12 * time.Hour

// cloud is the fake one with load balancers at addresses of others.
type cloud struct {
	*fake.Cloud
	addressAnnotation, ingressAnnotation string
}

func (c *cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return c, true }

func (c *cloud) GetLoadBalancer(ctx context.Context, cluster string, s *v1.Service) (*v1.LoadBalancerStatus, bool, error) {
	if _, _, err := c.Cloud.GetLoadBalancer(ctx, cluster, s); err != nil {
		return nil, false, err
	}
	status, err := c.status(s)
	return status, err == nil, err
}

func (c *cloud) EnsureLoadBalancer(ctx context.Context, cluster string, s *v1.Service, nodes []*v1.Node) (*v1.LoadBalancerStatus, error) {
	if _, err := c.Cloud.EnsureLoadBalancer(ctx, cluster, s, nodes); err != nil {
		return nil, err
	}
	fmt.Printf("%s pass over %s\n", time.Now().UTC().Format(time.RFC3339Nano), s.Name)
	return c.status(s)
}

func (c *cloud) UpdateLoadBalancer(ctx context.Context, cluster string, s *v1.Service, nodes []*v1.Node) error {
	fmt.Printf("%s nodes of %s\n", time.Now().UTC().Format(time.RFC3339Nano), s.Name)
	return c.Cloud.UpdateLoadBalancer(ctx, cluster, s, nodes)
}

// status is decoded and not built, because the older versions of the API have no field for the mode.
func (c *cloud) status(s *v1.Service) (*v1.LoadBalancerStatus, error) {
	address, ingress := s.Annotations[c.addressAnnotation], s.Annotations[c.ingressAnnotation]
	if address == "" || ingress == "" {
		return nil, fmt.Errorf("service %s lacks an annotation: %s or %s", s.Name, c.addressAnnotation, c.ingressAnnotation)
	}
	status := &v1.LoadBalancerStatus{}
	return status, json.Unmarshal([]byte(strings.ReplaceAll(ingress, "{address}", address)), &status.Ingress)
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "file with the access to the cluster")
	address := flag.String("address-annotation", "", "key of the annotation that holds the address of a Service's load balancer")
	ingress := flag.String("ingress-annotation", "", "key of the annotation that holds what is published, as JSON")
	flag.Parse()
	defer klog.Flush()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		klog.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		klog.Fatal(err)
	}
	// Older versions ask the gates of the process, whichever they are given.
	gates := utilfeature.DefaultMutableFeatureGate
	if err := features.SetupCurrentKubernetesSpecificFeatureGates(gates); err != nil {
		klog.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, resync)
	owner := &cloud{Cloud: &fake.Cloud{Exists: true}, addressAnnotation: *address, ingressAnnotation: *ingress}
	controller, err := service.New(owner, client, factory.Core().V1().Services(), factory.Core().V1().Nodes(), "e2e", gates)
	if err != nil {
		klog.Fatal(err)
	}
	factory.Start(ctx.Done())
	// One worker is the default of cloud-controller-managers.
	controller.Run(ctx, 1, controllersmetrics.NewControllerManagerMetrics("owner"))
}
