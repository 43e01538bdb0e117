package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// fieldDefault is what an unset field becomes.
type fieldDefault struct{ field, value string }

var ownPackage = reflect.TypeFor[v1alpha1.SandboxClaim]().PkgPath()

// findDefaults fills one object of each kind with empty structs down to its leaves, applies the defaults, and looks at
// what has become of the leaves: so it tells what the server does, whether a tag says it or a function.
func findDefaults() ([]fieldDefault, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	var found []fieldDefault
	seen := map[string]bool{}
	for _, object := range []runtime.Object{
		&v1alpha1.SandboxClaim{}, &v1alpha1.SandboxClass{}, &v1alpha1.ClusterSandboxClass{},
		&v1alpha1.SandboxAcquire{}, &v1alpha1.SandboxTouch{}, &v1alpha1.SandboxRelease{},
	} {
		value := reflect.ValueOf(object).Elem()
		fill(value)
		scheme.Default(object)
		err := eachLeaf(value, func(field string, leaf any) error {
			text, err := json.Marshal(leaf)
			if err != nil {
				return fmt.Errorf("writing the default of %s: %w", field, err)
			}
			if !seen[field] {
				found = append(found, fieldDefault{field, strings.Trim(string(text), `"`)})
			}
			seen[field] = true
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// isOwn says whether a type is a struct of the API's own, which has defaults of its own inside.
func isOwn(t reflect.Type) bool { return t.Kind() == reflect.Struct && t.PkgPath() == ownPackage }

// fill makes every struct of the API's own exist, so that its defaults apply.
func fill(v reflect.Value) {
	switch {
	case isOwn(v.Type()):
		for _, value := range v.Fields() {
			fill(value)
		}
	case v.Kind() == reflect.Pointer && isOwn(v.Type().Elem()):
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case v.Kind() == reflect.Slice && isOwn(v.Type().Elem()):
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	}
}

// eachLeaf visits the set fields that are no struct of the API's own, by <type>.<JSON name>.
func eachLeaf(v reflect.Value, visit func(field string, leaf any) error) error {
	for field, value := range v.Fields() {
		if value.Kind() == reflect.Slice && value.Len() > 0 {
			value = value.Index(0)
		}
		value = reflect.Indirect(value)
		if !value.IsValid() || value.IsZero() {
			continue
		}
		if isOwn(value.Type()) {
			if err := eachLeaf(value, visit); err != nil {
				return err
			}
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if err := visit(v.Type().Name()+"."+name, value.Interface()); err != nil {
			return err
		}
	}
	return nil
}
