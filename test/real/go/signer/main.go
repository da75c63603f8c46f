// signer runs the controller of kube-controller-manager that signs CertificateSigningRequests for
// kubernetes.io/kube-apiserver-client, and no other part of it. The whole program would add the kubelet and cAdvisor to
// the build.
//
// It exits by itself after -for, so that a killed test leaves no process behind.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/controller/certificates/signer"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "credentials to watch requests and to write certificates with")
	caFile := flag.String("cert", "", "the authority's certificate")
	keyFile := flag.String("key", "", "its key")
	duration := flag.Duration("for", 5*time.Minute, "how long to run")
	flag.Parse()
	if err := run(*kubeconfig, *caFile, *keyFile, *duration); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, caFile, keyFile string, duration time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	requests := factory.Certificates().V1().CertificateSigningRequests()
	controller, err := signer.NewKubeAPIServerClientCSRSigningController(ctx, client, requests, caFile, keyFile, time.Hour)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	controller.Run(ctx, 1)
	return nil
}
