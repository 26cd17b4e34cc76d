// The kubelet of a machine that is larger than the one it runs on: everything is Kubernetes' own, except that it
// counts the processors and the memory that it is told. Its settings come from a file alone.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	cadvisorapi "github.com/google/cadvisor/info/v1"
	"k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet/cadvisor"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/configfiles"
	utilfs "k8s.io/kubernetes/pkg/util/filesystem"
)

// sized answers as cAdvisor does, of a machine with other processors and memory.
type sized struct {
	cadvisor.Interface
	cpus        int
	memoryBytes uint64
}

func (s sized) MachineInfo() (*cadvisorapi.MachineInfo, error) {
	found, err := s.Interface.MachineInfo()
	if err != nil {
		return nil, err
	}
	told := found.Clone()
	told.NumCores, told.MemoryCapacity = s.cpus, s.memoryBytes
	return told, nil
}

func main() {
	config := flag.String("config", "", "file with a KubeletConfiguration")
	kubeconfig := flag.String("kubeconfig", "", "file that logs the node in")
	name := flag.String("hostname-override", "", "name of the node")
	address := flag.String("node-ip", "", "address of the node")
	labels := flag.String("node-labels", "", "labels of the node, k=v with commas between them")
	root := flag.String("root-dir", "", "folder of the node's pods")
	cpus := flag.Int("cpus", 1, "processors of the machine")
	gib := flag.Uint64("memory-gib", 1, "memory of the machine")
	flag.Parse()
	flags := options.NewKubeletFlags()
	flags.KubeConfig, flags.HostnameOverride, flags.RootDirectory = *kubeconfig, *name, *root
	flags.NodeIP, flags.NodeLabels = *address, map[string]string{}
	for _, label := range strings.Split(*labels, ",") {
		if key, value, found := strings.Cut(label, "="); found {
			flags.NodeLabels[key] = value
		}
	}
	if err := run(*config, flags, *cpus, *gib); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(config string, flags *options.KubeletFlags, cpus int, gib uint64) error {
	logs.InitLogs()
	loader, err := configfiles.NewFsLoader(&utilfs.DefaultFs{}, config)
	if err != nil {
		return err
	}
	settings, err := loader.Load(context.Background())
	if err != nil {
		return err
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(settings.FeatureGates); err != nil {
		return err
	}
	kubelet := &options.KubeletServer{KubeletFlags: *flags, KubeletConfiguration: *settings}
	ctx := context.Background()
	dependencies, err := app.UnsecuredDependencies(ctx, kubelet, utilfeature.DefaultFeatureGate)
	if err != nil {
		return err
	}
	images := cadvisor.NewImageFsInfoProvider(settings.ContainerRuntimeEndpoint)
	groups := []string{settings.CgroupRoot}
	legacy := cadvisor.UsingLegacyCadvisorStats(settings.ContainerRuntimeEndpoint)
	real, err := cadvisor.New(images, flags.RootDirectory, groups, legacy, settings.LocalStorageCapacityIsolation)
	if err != nil {
		return err
	}
	dependencies.CAdvisorInterface = sized{real, cpus, gib << 30}
	return app.Run(server.SetupSignalContext(), kubelet, dependencies, utilfeature.DefaultFeatureGate)
}
