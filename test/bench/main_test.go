package main

import (
	"strings"
	"testing"
)

func TestParse_Refusals(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"-only=bond"}, `no scenario "bond"`},
		{[]string{"-image=i"}, "give its -kubeconfig"},
		{[]string{"-kubeconfig=k"}, "needs -image"},
		{[]string{"bound"}, `"bound" is no flag`},
		{[]string{"-sizes=300,100"}, "each larger than the one before"},
		{[]string{"-sizes=100,many"}, "write numbers of claims"},
		{[]string{"-fast"}, "flag provided but not defined"},
	} {
		if _, err := parse(tc.args); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: got %v, want an error with %q", tc.args, err, tc.want)
		}
	}
}

func TestParse_Only(t *testing.T) {
	o, err := parse([]string{"-only=bound,touch", "-full", "-sizes=100,1000"})
	if err != nil || len(o.only) != 2 || len(o.Sizes) != 2 || !o.Full {
		t.Errorf("got %+v, %v", o, err)
	}
}
