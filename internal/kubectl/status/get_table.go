package status

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// renderTable writes the volumes as a table.
func renderTable(env *cli.Env, volumes []VolumeRow, provisioner string, wide bool, now time.Time) error {
	if len(volumes) == 0 {
		what := "There are no volumes."
		if provisioner != "" {
			what = fmt.Sprintf("PavProvisioner %q has no volumes.", provisioner)
		}
		if _, err := fmt.Fprintln(env.ErrOut, what); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
		return nil
	}
	style := env.Style()
	table := newTable(style, wide, "NAMESPACE", "CLAIM", "PROVISIONER", "PHASE", "STEP", "CAPACITY", "NODES", "FAILURES", "AGE", "PV")
	for i := range volumes {
		v := &volumes[i]
		row := []string{v.Namespace, v.Claim, v.Provisioner, phaseCell(style, v), dash(strings.ToLower(string(v.Step))), dash(v.Capacity),
			nodesCell(style, v.Nodes), failureCell(style, v), cli.Duration(now.Sub(v.Created.Time)), v.PV}
		if wide {
			row = append(row, cli.Plain(strings.ReplaceAll(v.Failure, "\n", " | ")))
		}
		table.Row(row...)
	}
	return table.Write(env.Out, "")
}

// newTable returns a table with a heading, to which a wide table adds the last failure.
func newTable(style cli.Style, wide bool, head ...string) *cli.Table {
	table := &cli.Table{}
	if wide {
		head = append(head, "LAST FAILURE")
	}
	for i := range head {
		head[i] = style.Dim(head[i])
	}
	table.Row(head...)
	return table
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func phaseCell(style cli.Style, v *VolumeRow) string {
	switch {
	case !v.Dynamic && v.Failures > 0:
		return style.Bad("Static")
	case !v.Dynamic:
		return "Static"
	case v.Failures > 0:
		return style.Bad(string(v.Phase))
	case v.Phase == pavv1.VolumeReady:
		return style.Good(string(v.Phase))
	}
	return string(v.Phase)
}

// maxNodesShown is the maximum number of nodes that are named.
const maxNodesShown = 4

// nodesCell names the nodes with the volume, with the phase if it is not Staged.
func nodesCell(style cli.Style, all []VolumeNode) string {
	var words []string
	for i := range all {
		n := &all[i]
		if i == maxNodesShown {
			words = append(words, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		word := n.Name
		if n.Phase != pavv1.StageStaged {
			word += " " + dash(string(n.Phase))
		}
		if n.Degraded != "" {
			word += " " + n.Degraded
		}
		switch {
		case n.Failing():
			word = style.Bad(word)
		case n.Phase == pavv1.StageStaged:
			word = style.Good(word)
		}
		words = append(words, word)
	}
	return dash(strings.Join(words, ", "))
}

func failureCell(style cli.Style, v *VolumeRow) string {
	count := v.Failures
	for i := range v.Nodes {
		count += v.Nodes[i].Failures
	}
	if count == 0 {
		return "0"
	}
	return style.Bad(strconv.Itoa(int(count)))
}
