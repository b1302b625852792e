package plan

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// quantity returns the number of bytes that a field stands for, and whether it is there at all.
func (r Request) quantity(ctx context.Context, field string, given *pavv1.Template, vars template.Variables) (bytes int64, found bool, err error) {
	value, err := r.evaluate(ctx, field, given, vars)
	if err != nil || value == nil {
		return 0, false, err
	}
	if bytes, err = template.Capacity(field, value); err != nil {
		return 0, false, err
	}
	return bytes, true, nil
}

// list returns the strings that a field lists, each of which must be known; or, where it is absent, those of byDefault.
func (r Request) list(ctx context.Context, field string, given *pavv1.Template, vars template.Variables, byDefault, known []string) ([]string, error) {
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
			return nil, refuse("%s[%d]: %q is none of %s", field, i, item, strings.Join(known, ", "))
		}
	}
	return items, nil
}

// bytes writes a capacity as people do.
func bytes(n int64) string {
	return resource.NewQuantity(n, resource.BinarySI).String()
}
