package definition

import (
	"reflect"
	"strings"
	"testing"

	"github.com/albertofaria/pav/internal/workflow"
)

func TestSecretWord(t *testing.T) {
	for name, want := range map[string]bool{
		"PASSWORD": true, "DB_PASSWORD": true, "ADMINPASSWORD": true, "passwd": true, "AWS_SECRET_ACCESS_KEY": true, "S3_TOKEN": true, "TOKENS": true,
		"API_KEY": true, "APIKEY": true, "accessKey": true, "rootSecretKey": true, "SECRET": true, "s3.token": true, "TOKEN_VALID": true,
		"MONKEY": false, "KEYRING": false, "KEYBOARD_LAYOUT": false, "TOKENIZER": false, "ENDPOINT": false, "": false,
		"KEY_FILE": false, "ACCESS_KEY_ID": false, "SECRET_NAME": false, "TOKEN_URL": false, "accessKeyId": false, "KEY_PREFIX": false, "tokenPath": false,
	} {
		if got := secretWord.MatchString(name) && !placeWord.MatchString(name); got != want {
			t.Errorf("%q: got %t", name, got)
		}
	}
}

func TestMentions(t *testing.T) {
	shell := func(script string) node {
		return node{value: containers(map[string]any{"name": "a", "image": "b:1", "command": []any{"sh", "-ec", script}})}
	}
	program := containers(map[string]any{"name": "a", "image": "b:1", "command": []any{"tool"}}, map[string]any{"name": "b", "image": "b:1", "command": []any{"sh", "-c", "true"}})
	for name, test := range map[string]struct {
		pod             node
		mentioned, sure bool
	}{
		"it does":                     {shell("touch /pav/created"), true, true},
		"it does after cd":            {shell("cd /pav\nmake\n: > created"), true, true},
		"it does not":                 {shell("make; touch /pav/ready"), false, true},
		"a similar file":              {shell("touch /pav/created-not; cd /tmp; touch created"), true, true},
		"another directory":           {shell("cd /tmp; touch created"), false, true},
		"a program":                   {node{value: program}, false, false},
		"a program in the image":      {node{value: containers(map[string]any{"name": "a", "image": "b:1"})}, false, false},
		"a template that may do it":   {node{value: "{% set yaml = true %}{{ params.pod }}"}, false, false},
		"a template that does it":     {node{value: "{% set yaml = true %}spec: {args: [touch /pav/created]}"}, true, false},
		"containers in a template":    {node{value: map[string]any{"spec": map[string]any{"containers": "{{ x }}"}}}, false, false},
		"nothing":                     {node{}, false, false},
		"a variable of a script":      {node{value: containers(map[string]any{"command": []any{"sh", "-c", "touch $F"}, "env": []any{map[string]any{"name": "F", "value": "/pav/created"}}})}, true, true},
		"a script in a list of items": {node{value: containers(map[string]any{"command": []any{"nsenter", "sh", "-c"}, "args": []any{"true"}})}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			if mentioned, sure := mentions(test.pod, mentionsCreated); mentioned != test.mentioned || sure != test.sure {
				t.Errorf("got %t, %t", mentioned, sure)
			}
		})
	}
}

// Both packages know the same names.
func TestBucketInfo_HasTheNamesOfPackageWorkflow(t *testing.T) {
	names := schemaOf(reflect.TypeFor[bucketInfo]()).names
	for _, name := range names {
		value := "443"
		if name == workflow.InfoAddressingStyle {
			value = workflow.AddressingStyles()[0]
		}
		if err := workflow.CheckInfo(name, value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := workflow.CheckInfo("none", ""); !strings.Contains(err.Error(), "is none of "+strings.Join(names, ", ")+", and not below") {
		t.Errorf("the names are %v, but: %v", names, err)
	}
}
