// cert-manager's controllers in one process, as its own program runs them: those that are on by default, with its defaults for
// everything that is not a flag here. That program is a module of its own that is never tagged, so it cannot be required by a
// version; all that works in it is in the main module, which is. Its election, metrics and health checks are left out. The name of
// this module lets it read the defaults, which are internal to cert-manager.
package main

import (
	"context"
	"flag"
	"log"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"k8s.io/apimachinery/pkg/api/resource"

	config "github.com/cert-manager/cert-manager/internal/apis/config/controller"
	"github.com/cert-manager/cert-manager/internal/apis/config/controller/scheme"
	defaults "github.com/cert-manager/cert-manager/internal/apis/config/controller/v1alpha1"
	configv1alpha1 "github.com/cert-manager/cert-manager/pkg/apis/config/controller/v1alpha1"
	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/acme"
	dnsutil "github.com/cert-manager/cert-manager/pkg/issuer/acme/dns/util"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/vault"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/venafi"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "file with the access to the cluster")
	namespace := flag.String("cluster-resource-namespace", "", "where Secrets of ClusterIssuers are; default of cert-manager")
	flag.Parse()
	defer logf.FlushLogs()

	settings, err := defaulted(&configv1alpha1.ControllerConfiguration{
		KubeConfig: *kubeconfig, ClusterResourceNamespace: *namespace,
	})
	if err != nil {
		log.Fatal(err)
	}
	logf.InitLogs()
	if err := logf.ValidateAndApply(&settings.Logging); err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(logf.NewContext(ctx, logf.Log.WithName("controller")), settings); err != nil {
		log.Fatal(err)
	}
}

// defaulted is what a configuration file of this content means to cert-manager.
func defaulted(given *configv1alpha1.ControllerConfiguration) (*config.ControllerConfiguration, error) {
	types, _, err := scheme.NewSchemeAndCodecs()
	if err != nil {
		return nil, err
	}
	types.Default(given)
	settings := &config.ControllerConfiguration{}
	return settings, types.Convert(given, settings, nil)
}

func run(ctx context.Context, settings *config.ControllerConfiguration) error {
	options, err := contextOptions(settings)
	if err != nil {
		return err
	}
	factory, err := controller.NewContextFactory(ctx, options)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	for name, construct := range controller.Known() {
		if !slices.Contains(defaults.DefaultEnabledControllers, name) {
			continue
		}
		one, err := construct(factory)
		if err != nil {
			return err
		}
		running.Go(func() {
			if err := one.Run(settings.NumberOfConcurrentWorkers, ctx); err != nil {
				log.Fatalf("%s: %v", name, err)
			}
		})
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	running.Wait()
	return nil
}

// contextOptions hands the configuration over to the controllers.
func contextOptions(settings *config.ControllerConfiguration) (controller.ContextOptions, error) {
	solver, dns, shim := settings.ACMEHTTP01Config, settings.ACMEDNS01Config, settings.IngressShimConfig
	nameservers := dns.RecursiveNameservers
	if len(nameservers) == 0 {
		nameservers = dnsutil.RecursiveNameservers
	}
	quantities := map[string]resource.Quantity{}
	for _, text := range []string{
		solver.SolverResourceRequestCPU, solver.SolverResourceRequestMemory,
		solver.SolverResourceLimitsCPU, solver.SolverResourceLimitsMemory,
	} {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return controller.ContextOptions{}, err
		}
		quantities[text] = quantity
	}
	return controller.ContextOptions{
		Kubeconfig: settings.KubeConfig, Namespace: settings.Namespace,
		KubernetesAPIQPS: settings.KubernetesAPIQPS, KubernetesAPIBurst: settings.KubernetesAPIBurst,
		IssuerOptions: controller.IssuerOptions{
			ClusterResourceNamespace:        settings.ClusterResourceNamespace,
			ClusterIssuerAmbientCredentials: settings.ClusterIssuerAmbientCredentials,
			IssuerAmbientCredentials:        settings.IssuerAmbientCredentials,
		},
		ACMEOptions: controller.ACMEOptions{
			HTTP01SolverImage:                 solver.SolverImage,
			HTTP01SolverResourceRequestCPU:    quantities[solver.SolverResourceRequestCPU],
			HTTP01SolverResourceRequestMemory: quantities[solver.SolverResourceRequestMemory],
			HTTP01SolverResourceLimitsCPU:     quantities[solver.SolverResourceLimitsCPU],
			HTTP01SolverResourceLimitsMemory:  quantities[solver.SolverResourceLimitsMemory],
			ACMEHTTP01SolverRunAsNonRoot:      solver.SolverRunAsNonRoot,
			HTTP01SolverNameservers:           solver.SolverNameservers,
			DNS01CheckAuthoritative:           !dns.RecursiveNameserversOnly,
			DNS01Nameservers:                  nameservers,
			DNS01CheckRetryPeriod:             dns.CheckRetryPeriod,
		},
		IngressShimOptions: controller.IngressShimOptions{
			DefaultIssuerName:                 shim.DefaultIssuerName,
			DefaultIssuerKind:                 shim.DefaultIssuerKind,
			DefaultIssuerGroup:                shim.DefaultIssuerGroup,
			DefaultAutoCertificateAnnotations: shim.DefaultAutoCertificateAnnotations,
			ExtraCertificateAnnotations:       shim.ExtraCertificateAnnotations,
		},
		CertificateOptions: controller.CertificateOptions{
			EnableOwnerRef:                           settings.EnableCertificateOwnerRef,
			CopiedAnnotationPrefixes:                 settings.CopiedAnnotationPrefixes,
			CertificateRequestMinimumBackoffDuration: settings.CertificateRequestMinimumBackoffDuration,
		},
		SchedulerOptions: controller.SchedulerOptions{MaxConcurrentChallenges: settings.MaxConcurrentChallenges},
	}, nil
}
