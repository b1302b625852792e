package version

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/kubectl/agent"
	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// Result is the output of -o.
type Result struct {
	Client string `json:"client"`

	// Namespace is the namespace of the agents.
	Namespace string  `json:"namespace,omitempty"`
	Agents    []Agent `json:"agents"`

	// Skew says which versions differ, or is empty.
	Skew string `json:"skew,omitempty"`
}

// Agent is a version of an agent, and the pods that have it.
type Agent struct {
	Component string `json:"component"`

	// Version is the tag of the pods' image.
	Version string `json:"version"`
	Pods    int    `json:"pods"`

	// Nodes are those of the pods, if the agent has several versions.
	Nodes []string `json:"nodes,omitempty"`
}

// Command returns the command "version".
func Command(env *cli.Env) *cobra.Command {
	output, onlyClient := &cli.Output{}, false
	command := &cobra.Command{
		Use:   "version",
		Short: "Compare the versions of this command and of the agents",
		Long: `Print the versions of this command and of PaV's agents in the cluster. While PaV is upgraded, agents of two
versions work side by side; at all other times, the versions should be the same.`,
		Example: "  kubectl pav version\n  kubectl pav version --client",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			result := &Result{Client: env.Version, Agents: []Agent{}}
			if !onlyClient {
				cluster, err := env.Connect()
				if err != nil {
					return &cli.ExitError{Code: 2, Err: err}
				}
				if result, err = read(command.Context(), cluster.Objects, env.Version); err != nil {
					return err
				}
			}
			if output.Structured() {
				return output.Write(env.Out, result)
			}
			return result.write(env.Out)
		},
	}
	command.Flags().BoolVar(&onlyClient, "client", false, "only the version of this command; no cluster is needed")
	output.AddFlag(command.Flags())
	return command
}

// read compares the version of this command with those of the agents.
func read(ctx context.Context, objects client.Reader, plugin string) (*Result, error) {
	namespace, err := agent.Namespace(ctx, objects)
	if err != nil {
		return nil, err
	}
	pods := &corev1.PodList{}
	if err := objects.List(ctx, pods, client.InNamespace(namespace), agent.All()); err != nil {
		return nil, fmt.Errorf("looking up the agents: %w", err)
	}
	return Compare(plugin, namespace, pods.Items), nil
}

// Compare compares the version of the plugin with those of the agents, which have these pods in a namespace. It is a pure
// function.
func Compare(plugin, namespace string, pods []corev1.Pod) *Result {
	r := &Result{Client: plugin, Namespace: namespace, Agents: agents(pods)}
	r.Skew = skew(r)
	return r
}

// agents groups pods by agent and version.
func agents(pods []corev1.Pod) []Agent {
	found := []Agent{}
	for i := range pods {
		pod := &pods[i]
		component := pod.Labels[agent.ComponentLabel]
		if component == "" || len(pod.Spec.Containers) == 0 || pod.DeletionTimestamp != nil {
			continue
		}
		version := tagOf(pod.Spec.Containers[0].Image)
		at := slices.IndexFunc(found, func(a Agent) bool { return a.Component == component && a.Version == version })
		if at < 0 {
			at = len(found)
			found = append(found, Agent{Component: component, Version: version})
		}
		found[at].Pods++
		if pod.Spec.NodeName != "" {
			found[at].Nodes = append(found[at].Nodes, pod.Spec.NodeName)
		}
	}
	slices.SortFunc(found, func(a, b Agent) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Version, b.Version))
	})
	for i := range found {
		slices.Sort(found[i].Nodes)
		if mixed := slices.ContainsFunc(found, func(a Agent) bool { return a.Component == found[i].Component && a.Version != found[i].Version }); !mixed {
			found[i].Nodes = nil
		}
	}
	return found
}

// tagOf returns the tag of an image, or the digest if it has no tag.
func tagOf(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	if at := strings.LastIndex(name, ":"); at > strings.LastIndex(name, "/") {
		return name[at+1:]
	}
	return cmp.Or(digest, "latest")
}

// skew says which versions differ, or returns "".
func skew(r *Result) string {
	if len(r.Agents) == 0 {
		return fmt.Sprintf("no agent runs in namespace %q: PaV is not installed, or not there", r.Namespace)
	}
	for _, a := range r.Agents {
		if a.Version != r.Agents[0].Version {
			return "agents of several versions run; if no upgrade is under way, see: kubectl -n " + r.Namespace + " rollout status daemonset/node-agent"
		}
	}
	if version := r.Agents[0].Version; version != r.Client {
		return fmt.Sprintf("the agents have version %s, and this command has version %s: install that of the agents", version, r.Client)
	}
	return ""
}

func (r *Result) write(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(table, "client\t%s\n", r.Client) //nolint:errcheck // Flush returns the error.
	for _, a := range r.Agents {
		line := fmt.Sprintf("%s\t%s\t%d pods", cli.Plain(a.Component), cli.Plain(a.Version), a.Pods)
		if a.Pods == 1 {
			line = strings.TrimSuffix(line, "s")
		}
		if len(a.Nodes) > 0 {
			line += ", on " + cli.Plain(strings.Join(a.Nodes, ", "))
		}
		fmt.Fprintln(table, line) //nolint:errcheck // Flush returns the error.
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	if r.Skew != "" {
		if _, err := fmt.Fprintln(out, r.Skew); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
	}
	return nil
}
