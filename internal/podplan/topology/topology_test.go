package topology

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// term returns a term of allowedTopologies: it selects the nodes whose labels meet all requirements.
func term(requirements ...corev1.TopologySelectorLabelRequirement) corev1.TopologySelectorTerm {
	return corev1.TopologySelectorTerm{MatchLabelExpressions: requirements}
}

func one(key string, values ...string) corev1.TopologySelectorLabelRequirement {
	return corev1.TopologySelectorLabelRequirement{Key: key, Values: values}
}

func TestNodeAffinity(t *testing.T) {
	if got := NodeAffinity(nil); got != nil {
		t.Errorf("all nodes: got %v", got)
	}
	is := func(key, value string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
	}
	want := &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{is("disk", "ssd"), is("rack", "1"), is("zone", "a")}},
		{MatchExpressions: []corev1.NodeSelectorRequirement{is("zone", "b")}},
	}}}
	got := NodeAffinity([]labels{{"zone": "a", "rack": "1", "disk": "ssd"}, {"zone": "b"}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the affinity (-want +got):\n%s", diff)
	}
}

func TestMatches(t *testing.T) {
	for name, test := range map[string]struct {
		topology []labels
		node     map[string]string
		want     bool
	}{
		"every node is everywhere":                 {nil, nil, true},
		"a node with the label and others":         {[]labels{{"zone": "a"}}, map[string]string{"zone": "a", "x": "y"}, true},
		"a node with another value":                {[]labels{{"zone": "a"}}, map[string]string{"zone": "b"}, false},
		"a node without the label":                 {[]labels{{"zone": "a"}}, nil, false},
		"a node without a label of an empty value": {[]labels{{"zone": ""}}, map[string]string{"x": ""}, false},
		"a node with a label of an empty value":    {[]labels{{"zone": ""}}, map[string]string{"zone": ""}, true},
		"a node with one of two labels":            {[]labels{{"zone": "a", "rack": "1"}}, map[string]string{"zone": "a"}, false},
		"a node with the labels of an alternative": {[]labels{{"zone": "a", "rack": "1"}, {"zone": "b"}}, map[string]string{"zone": "b"}, true},
		"a node with labels of both alternatives":  {[]labels{{"zone": "a", "rack": "1"}, {"zone": "b", "rack": "2"}}, map[string]string{"zone": "a", "rack": "2"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Matches(test.topology, test.node); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestOverlaps(t *testing.T) {
	type terms = []corev1.TopologySelectorTerm
	for name, test := range map[string]struct {
		topology []labels
		allowed  terms
		want     bool
	}{
		"everywhere and all":                         {nil, nil, true},
		"everywhere and some":                        {nil, terms{term(one("zone", "a"))}, true},
		"somewhere and all":                          {[]labels{{"zone": "a"}}, nil, true},
		"one of the allowed values":                  {[]labels{{"zone": "a"}}, terms{term(one("zone", "b", "a"))}, true},
		"another value":                              {[]labels{{"zone": "c"}}, terms{term(one("zone", "b", "a"))}, false},
		"a label that the class does not speak of":   {[]labels{{"zone": "a", "rack": "1"}}, terms{term(one("zone", "a"))}, true},
		"a label that the volume does not speak of":  {[]labels{{"zone": "a"}}, terms{term(one("zone", "a"), one("rack", "1"))}, true},
		"labels that have nothing in common":         {[]labels{{"host": "x"}}, terms{term(one("zone", "a"))}, true},
		"one label allowed, another not":             {[]labels{{"zone": "a", "rack": "2"}}, terms{term(one("zone", "a"), one("rack", "1"))}, false},
		"each label allowed, but by different terms": {[]labels{{"zone": "a", "rack": "2"}}, terms{term(one("zone", "a"), one("rack", "1")), term(one("zone", "b"), one("rack", "2"))}, false},
		"the second alternative, by the second term": {[]labels{{"zone": "c"}, {"zone": "b"}}, terms{term(one("zone", "a")), term(one("zone", "b"))}, true},
		"none of the alternatives":                   {[]labels{{"zone": "c"}, {"zone": "d"}}, terms{term(one("zone", "a")), term(one("zone", "b"))}, false},
		"an empty term, which allows no node":        {[]labels{{"zone": "a"}}, terms{term()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Overlaps(test.topology, test.allowed); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestNodeSelector(t *testing.T) {
	if got := NodeSelector(nil); got != nil {
		t.Errorf("all nodes: got %v", got)
	}
	are := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	want := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{are("zone", "a", "b"), are("rack", "1")}},
		{MatchExpressions: []corev1.NodeSelectorRequirement{are("zone", "c")}},
		// As in a StorageClass, an empty term selects no nodes.
		{},
	}}
	allowed := []corev1.TopologySelectorTerm{term(one("zone", "a", "b"), one("rack", "1")), term(one("zone", "c")), term()}
	got := NodeSelector(allowed)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the selector (-want +got):\n%s", diff)
	}
	got.NodeSelectorTerms[0].MatchExpressions[0].Values[0] = "changed"
	if allowed[0].MatchLabelExpressions[0].Values[0] != "a" {
		t.Error("the selector shares memory with the class")
	}
}

func TestDescribe(t *testing.T) {
	for want, topology := range map[string][]labels{
		"all nodes":               nil,
		"zone=a":                  {{"zone": "a"}},
		"rack=1,zone=a or zone=b": {{"zone": "a", "rack": "1"}, {"zone": "b"}},
		"zone=":                   {{"zone": ""}},
	} {
		if got := Describe(topology); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}

	var many []labels
	for range 1000 {
		many = append(many, labels{"zone": "somewhere"})
	}
	if got := Describe(many); len(got) > 260 || !strings.HasPrefix(got, "zone=somewhere or zone=") || !strings.HasSuffix(got, "…") {
		t.Errorf("a thousand alternatives: got %q", got)
	}
}

func TestAllows(t *testing.T) {
	term := func(pairs ...string) corev1.TopologySelectorTerm {
		term := corev1.TopologySelectorTerm{}
		for i := 0; i < len(pairs); i += 2 {
			term.MatchLabelExpressions = append(term.MatchLabelExpressions,
				corev1.TopologySelectorLabelRequirement{Key: pairs[i], Values: []string{"other", pairs[i+1]}})
		}
		return term
	}
	node := map[string]string{"zone": "a", "rack": "1"}
	tests := map[string]struct {
		allowed []corev1.TopologySelectorTerm
		want    bool
	}{
		"all nodes":                 {want: true},
		"its zone":                  {allowed: []corev1.TopologySelectorTerm{term("zone", "a")}, want: true},
		"its zone and rack":         {allowed: []corev1.TopologySelectorTerm{term("zone", "a", "rack", "1")}, want: true},
		"another rack of its zone":  {allowed: []corev1.TopologySelectorTerm{term("zone", "a", "rack", "2")}},
		"one of two":                {allowed: []corev1.TopologySelectorTerm{term("zone", "b"), term("rack", "1")}, want: true},
		"a label that it lacks":     {allowed: []corev1.TopologySelectorTerm{term("row", "1")}},
		"a term without any labels": {allowed: []corev1.TopologySelectorTerm{{}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Allows(test.allowed, node); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestOfAffinity(t *testing.T) {
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	term := func(all ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: all}
	}
	many := make([]string, 11)
	for i := range many {
		many[i] = string(rune('a' + i))
	}
	for name, test := range map[string]struct {
		terms []corev1.NodeSelectorTerm
		want  []labels
		known bool
	}{
		"a label":                      {[]corev1.NodeSelectorTerm{term(in(zone, "a"))}, []labels{{zone: "a"}}, true},
		"values are alternatives":      {[]corev1.NodeSelectorTerm{term(in(zone, "a", "b"), in("rack", "1"))}, []labels{{zone: "a", "rack": "1"}, {zone: "b", "rack": "1"}}, true},
		"terms are alternatives":       {[]corev1.NodeSelectorTerm{term(in(zone, "a")), term(in("rack", "1"))}, []labels{{zone: "a"}, {"rack": "1"}}, true},
		"a key that is there twice":    {[]corev1.NodeSelectorTerm{term(in(zone, "a", "b"), in(zone, "b", "c"))}, []labels{{zone: "b"}}, true},
		"no node can match":            {[]corev1.NodeSelectorTerm{term(in(zone, "a"), in(zone, "b"))}, nil, false},
		"another operator":             {[]corev1.NodeSelectorTerm{term(corev1.NodeSelectorRequirement{Key: zone, Operator: corev1.NodeSelectorOpExists})}, nil, false},
		"a field":                      {[]corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{in("metadata.name", "n")}}}, nil, false},
		"a term that matches no nodes": {[]corev1.NodeSelectorTerm{{}}, nil, false},
		"too many alternatives":        {[]corev1.NodeSelectorTerm{term(in(zone, many...), in("rack", many...), in("row", many...))}, nil, false},
	} {
		got, known := OfAffinity(&corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: test.terms}})
		if known != test.known || known && !cmp.Equal(got, test.want) {
			t.Errorf("%s: got %v, %t", name, got, known)
		}
	}
	if got, known := OfAffinity(nil); got != nil || !known {
		t.Errorf("without one: got %v, %t", got, known)
	}
}

func TestBoth_IsOfNodesInBoth(t *testing.T) {
	allowed := func(values ...string) []corev1.TopologySelectorTerm {
		return []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: zone, Values: values}}}}
	}
	for name, test := range map[string]struct {
		topology []labels
		allowed  []corev1.TopologySelectorTerm
		want     []string // the values of the expressions of each term
	}{
		"all nodes":                 {nil, nil, nil},
		"all that are allowed":      {nil, allowed("a", "b"), []string{"zone a,b"}},
		"all that reach it":         {[]labels{{zone: "a"}, {zone: "b"}}, nil, []string{"zone a", "zone b"}},
		"those that are in both":    {[]labels{{zone: "a"}, {zone: "b"}}, allowed("b", "c"), []string{"zone b; zone b,c"}},
		"a label that only one has": {[]labels{{"rack": "1"}}, allowed("b"), []string{"rack 1; zone b"}},
	} {
		var got []string
		if selector := Both(test.topology, test.allowed); selector != nil {
			for _, term := range selector.NodeSelectorTerms {
				var words []string
				for _, e := range term.MatchExpressions {
					words = append(words, strings.TrimPrefix(e.Key, "topology.kubernetes.io/")+" "+strings.Join(e.Values, ","))
				}
				got = append(got, strings.Join(words, "; "))
			}
		}
		if !cmp.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
