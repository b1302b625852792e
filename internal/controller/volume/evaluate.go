package volume

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// evaluate returns the value of a field, or nil where it is absent.
func (r request) evaluate(ctx context.Context, field string, given *pavv1.Template, vars template.Variables) (any, error) {
	if given == nil {
		return nil, nil
	}
	key := template.Field{Object: r.provisioner.UID, Generation: r.provisioner.Generation, Path: field}
	return r.templates.Evaluate(ctx, key, *given, vars, r.getPVC)
}

// quantity returns the number of bytes that a field stands for, and whether it is there at all.
func (r request) quantity(ctx context.Context, field string, given *pavv1.Template, vars template.Variables) (bytes int64, found bool, err error) {
	value, err := r.evaluate(ctx, field, given, vars)
	if err != nil || value == nil {
		return 0, false, err
	}
	bytes, err = template.Capacity(field, value)
	return bytes, err == nil, err
}

// list returns the strings that a field lists, each of which must be known; or, where it is absent, those of byDefault.
func (r request) list(ctx context.Context, field string, given *pavv1.Template, vars template.Variables, byDefault, known []string) ([]string, error) {
	value, err := r.evaluate(ctx, field, given, vars)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return byDefault, nil
	}
	items, err := template.TextList(field, value)
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		if !slices.Contains(known, item) {
			return nil, fmt.Errorf("%s[%d]: %q is none of %s", field, i, item, strings.Join(known, ", "))
		}
	}
	return items, nil
}

// bytes writes a capacity as people do.
func bytes(n int64) string {
	return resource.NewQuantity(n, resource.BinarySI).String()
}
