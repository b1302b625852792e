package podplan

import (
	"context"

	"k8s.io/apimachinery/pkg/api/resource"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// quantity returns the value of a field in bytes, and whether the field exists.
func quantity(ctx context.Context, evaluate Evaluate, field string, given *pavv1.Template, vars template.Variables) (bytes int64, found bool, err error) {
	if given == nil {
		return 0, false, nil
	}
	value, err := evaluate(ctx, field, given, vars)
	if err != nil || value == nil {
		return 0, false, err
	}
	if bytes, err = template.Capacity(field, value); err != nil {
		return 0, false, err
	}
	return bytes, true, nil
}

// bytes formats a capacity for people.
func bytes(n int64) string {
	return resource.NewQuantity(n, resource.BinarySI).String()
}
