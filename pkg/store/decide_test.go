package store

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDecide(t *testing.T) {
	ours := func(generation int64) *Mark { return &Mark{ID: "ours", Generation: generation} }
	other := &Mark{ID: "other", Generation: 9}
	accepted := &Mark{ID: "new", Generation: 1, Replaces: "ours"}
	tests := map[string]struct {
		in     input
		due    action
		reason Reason
	}{
		"no mark in either: a fresh store":                                       {input{}, begin, ""},
		"no mark in either, accepted: a fresh store":                             {input{accept: true}, begin, ""},
		"no ConfigMap: it is written again":                                      {input{etcd: ours(5)}, record, ""},
		"no ConfigMap, accepted: it is written again":                            {input{etcd: ours(5), accept: true}, record, ""},
		"both the same: served":                                                  {input{etcd: ours(5), configMap: ours(5)}, serve, ""},
		"both the same, accepted: served":                                        {input{etcd: ours(5), configMap: ours(5), accept: true}, serve, ""},
		"etcd ahead, as after a crash between two writes: it is recorded":        {input{etcd: ours(6), configMap: ours(5)}, record, ""},
		"etcd ahead, accepted: it is recorded":                                   {input{etcd: ours(6), configMap: ours(5), accept: true}, record, ""},
		"etcd empty: refused":                                                    {input{configMap: ours(5)}, refuse, ReasonEmpty},
		"etcd empty, accepted: replaced":                                         {input{configMap: ours(5), accept: true}, replace, ReasonEmpty},
		"another store: refused":                                                 {input{etcd: other, configMap: ours(5)}, refuse, ReasonForeign},
		"another store, accepted: replaced":                                      {input{etcd: other, configMap: ours(5), accept: true}, replace, ReasonForeign},
		"the store as it was: refused":                                           {input{etcd: ours(4), configMap: ours(5)}, refuse, ReasonOlder},
		"the store as it was, accepted: replaced":                                {input{etcd: ours(4), configMap: ours(5), accept: true}, replace, ReasonOlder},
		"accepted by one that died before it told the ConfigMap: recorded":       {input{etcd: accepted, configMap: ours(5)}, record, ""},
		"accepted by another replica a moment ago: recorded, not accepted again": {input{etcd: accepted, configMap: ours(5), accept: true}, record, ""},
		"accepted in place of another store than this: refused":                  {input{etcd: accepted, configMap: other}, refuse, ReasonForeign},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			due, reason := decide(tt.in)
			assert.Equal(t, tt.due, due)
			assert.Equal(t, tt.reason, reason)
		})
	}
}

func TestError_SaysWhatWasFoundWhereAndWhatToDo(t *testing.T) {
	known := Mark{ID: "ours", Generation: 5}
	tests := map[Reason]struct {
		etcd *Mark
		says string
	}{
		ReasonEmpty:   {nil, "etcd holds no mark of a store at /prefix/store"},
		ReasonForeign: {&Mark{ID: "other", Generation: 9}, "etcd holds store other at /prefix/store"},
		ReasonOlder:   {&Mark{ID: "ours", Generation: 4}, "etcd holds generation 4 of it at /prefix/store"},
	}
	for reason, tt := range tests {
		t.Run(string(reason), func(t *testing.T) {
			err := &Error{Reason: reason, Etcd: tt.etcd, Known: known, Key: "/prefix/store", ConfigMap: "ns/name"}
			says := err.Error()
			assert.True(t, strings.HasPrefix(says, string(reason)+": the server's store is ours at generation 5 (ConfigMap ns/name)"), says)
			assert.Contains(t, says, tt.says)
			assert.Contains(t, says, "--accept-new-store")
			assert.NotContains(t, says, "\n", "it is the last line of the log")
			assert.Less(t, len(says), 1024, "it is an Event's message")
		})
	}
}

func TestDecode_WhatIsNoMark(t *testing.T) {
	for _, text := range []string{"", "gone", "{}", `{"id":"a"}`, `{"generation":1}`, `{"id":"a","generation":0}`} {
		_, err := decode([]byte(text))
		assert.ErrorIs(t, err, errUnreadable, text)
	}
	mark := Mark{ID: "a", Generation: 2, Replaces: "b"}
	got, err := decode([]byte(encode(mark)))
	assert.NoError(t, err)
	assert.Equal(t, mark, got)
}
