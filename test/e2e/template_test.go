package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A definition of which most is computed: a list of variables from a mapping, a macro, a claim that is looked up, and
// text of a tenant's that would do harm in a shell.
const computed = `
apiVersion: pav.albertofaria.github.io/v1alpha1
kind: PavProvisioner
metadata:
  name: computed
spec:
  provisioningModes: [Dynamic]
  volumeCreation:
    capacity: |-
      {% set least = requestedMinCapacity %}
      {{ [least, 4 * 1024 ** 2] | max }}
  volumeStaging:
    podTemplate:
      spec:
        containers:
          - name: main
            image: busybox:1.37.0
            command: [bash, -ec]
            env: |
              {% set yaml = true %}
              {% for name, value in params.items() | sort %}
              - name: {{ ('PARAM_' ~ name) | upper | tojson }}
                value: {{ value | tojson }}
              {% else %}
              []
              {% endfor %}
            args:
              - |
                {% macro line(text) -%}
                echo {{ text | tobash }} >> /pav/volume/file
                {%- endmacro %}
                mkdir /pav/volume
                {{ line(pvc.metadata.annotations['text']) }}
                {{ line('%d of %s' % (capacity, get_pvc(pvc.metadata.annotations['other'], pvc.metadata.namespace).spec.accessModes | join('+'))) }}
                echo "$PARAM_COLOUR" >> /pav/volume/file
                {% if not readOnly and 'ReadWriteOnce' in accessModes %}
                {{ line('written once') }}
                {% endif %}
`

func TestTemplates_ComputeWhatThePodIs(t *testing.T) {
	namespace := beside(t)
	const text = "it's $(touch /pav/harm) `touch /pav/harm` \"\\; {{ 1 }}\nsecond line"
	class := storageClass("computed") + "parameters: {colour: \"green: {{ 2 }}\"}\n"
	annotated := strings.Replace(claim("data", "computed", "ReadWriteOnce"), "  name: data\n", fmt.Sprintf("  name: data\n  annotations: {text: %q, other: other}\n", text), 1)
	apply(t, namespace, documents(computed, class, strings.Replace(claim("other", "nothing", "ReadWriteMany, ReadOnlyMany"), `"nothing"`, `""`, 1)))
	apply(t, namespace, documents(annotated, clientPod("reader", "data", "")))
	waitRunning(t, namespace, "reader")

	got, err := inPod(t.Context(), namespace, "reader", "cat /data/file; ls /pav/harm 2>/dev/null || true")
	must(t, err)
	want := text + "\n4194304 of ReadWriteMany+ReadOnlyMany\ngreen: {{ 2 }}\nwritten once\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the pod reads: -want +got:\n%s", diff)
	}
	pods, err := stagingPods(t.Context(), "computed")
	must(t, err)
	if len(pods) != 1 {
		t.Fatalf("there are %d staging pods, want one", len(pods))
	}
	harm, err := onNode(t.Context(), pods[0].Spec.NodeName, "find", "/var/lib/kubelet/plugins/pav.albertofaria.github.io", "-xdev", "-name", "harm")
	must(t, err)
	if harm != "" {
		t.Errorf("a command of the tenant's ran: %s", harm)
	}
}
