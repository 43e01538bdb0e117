package main

import (
	"fmt"
	"strings"
)

// line is a command line, taken apart.
type line struct {
	words []string
	// file is where the output goes, if the line redirects it; grow appends to it.
	file string
	grow bool
}

// operators are what a real shell would act on. Outside of quotes they are refused, rather than taken for text.
const operators = "|;&<"

// parser takes a command line apart, rune by rune.
type parser struct {
	tokens []token
	word   strings.Builder
	begun  bool // a word has begun, be it an empty one in quotes
	quote  rune // the quote that is open
}

// token is a word, or an arrow: > or >>.
type token struct {
	text  string
	arrow bool
}

// parse takes a command line apart at spaces, but for what is quoted, and finds where its output goes.
func parse(text string) (*line, error) {
	p := &parser{}
	for _, r := range text {
		if err := p.take(r); err != nil {
			return nil, err
		}
	}
	if p.quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", p.quote)
	}
	p.endWord()
	return redirect(p.tokens)
}

func (p *parser) take(r rune) error {
	switch {
	case p.quote != 0 && r == p.quote:
		p.quote = 0
	case p.quote != 0:
		p.word.WriteRune(r)
	case r == '\'' || r == '"':
		p.quote, p.begun = r, true
	case r == ' ' || r == '\t' || r == '\n':
		p.endWord()
	case r == '>':
		p.arrow()
	case strings.ContainsRune(operators, r):
		return fmt.Errorf("%c is not supported: run one command a call, or put it in quotes", r)
	default:
		p.word.WriteRune(r)
		p.begun = true
	}
	return nil
}

func (p *parser) endWord() {
	if p.begun {
		p.tokens = append(p.tokens, token{text: p.word.String()})
	}
	p.word.Reset()
	p.begun = false
}

func (p *parser) arrow() {
	if last := len(p.tokens) - 1; !p.begun && last >= 0 && p.tokens[last] == (token{text: ">", arrow: true}) {
		p.tokens[last].text = ">>"
		return
	}
	p.endWord()
	p.tokens = append(p.tokens, token{text: ">", arrow: true})
}

// redirect tells words from the file that the output goes to.
func redirect(tokens []token) (*line, error) {
	out := &line{}
	for i := 0; i < len(tokens); i++ {
		if !tokens[i].arrow {
			out.words = append(out.words, tokens[i].text)
			continue
		}
		if i+1 == len(tokens) || tokens[i+1].arrow || out.file != "" {
			return nil, fmt.Errorf("%s wants one file name, once", tokens[i].text)
		}
		out.file, out.grow = tokens[i+1].text, tokens[i].text == ">>"
		i++
	}
	if out.file != "" && len(out.words) == 0 {
		return nil, fmt.Errorf("there is no command whose output could go to %s", out.file)
	}
	return out, nil
}
