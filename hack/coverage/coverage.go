// Package coverage holds docs/specification-coverage.md and docs/security.md to what exists: each sentence and each promise
// there names a test, is for later, or is superseded by a departure that the page lists; and every test and declaration that
// it names is in its package. It refuses to run a test, and to judge whether a test proves its sentence.
package coverage

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// The tables that are held to something: whose last two columns say where a thing is decided, and by which test it is shown.
const (
	departuresHead = "| Departure |"
	sentencesHead  = "| Sentence |"
	promisesHead   = "| Promise |"
)

var (
	row = map[string]*regexp.Regexp{
		sentencesHead: regexp.MustCompile(`^\| [^|]+ \| ([^|]+) \| ([^|]+) \|$`),
		promisesHead:  regexp.MustCompile(`^\| [^|]+ \| [^|]+ \| ([^|]+) \| ([^|]+) \|$`),
	}
	columns = map[string]string{
		sentencesHead: "not three columns: write | sentence | where it is decided | test |",
		promisesHead:  "not four columns: write | promise | attempt | what keeps it | test |",
	}
	departure = regexp.MustCompile(`^\| ([^|]+) \|`)
	code      = regexp.MustCompile("`([^`]+)`")
	test      = regexp.MustCompile(`^([\w./-]+): (Test\w+)(?:/(.+))?$`)
	declared  = regexp.MustCompile(`^((?:apis|cmd|hack|pkg|registry|test)/[\w./-]+)\.(\w+)$`)
)

// checker knows the tree that the page speaks of.
type checker struct {
	root       fs.FS
	packages   map[string]*names
	departures set
}

// names are what a package declares, and what its tests spell.
type names struct {
	declared set
	// tests has each test function's strings, among which are the names of its rows; under "" are those outside functions.
	tests map[string]set
}

type set map[string]bool

// Faults are the page's lines that do not hold, each with what to do. root is the repository.
func Faults(page string, root fs.FS) []string {
	lines := strings.Split(page, "\n")
	c := checker{root: root, packages: map[string]*names{}, departures: departuresOf(lines)}
	var faults []string
	sentences, table := 0, ""
	for i, line := range lines {
		switch {
		case !strings.HasPrefix(line, "|"):
			table = ""
			continue
		case table == "":
			first, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
			table = "|" + first + "|"
			continue
		case row[table] == nil || strings.HasPrefix(line, "| --- |"):
			continue
		}
		sentences++
		cells := row[table].FindStringSubmatch(line)
		if cells == nil {
			faults = append(faults, fmt.Sprintf("line %d: %s", i+1, columns[table]))
			continue
		}
		for _, fault := range append(c.place(cells[1]), c.proof(cells[2])...) {
			faults = append(faults, fmt.Sprintf("line %d: %s", i+1, fault))
		}
	}
	if sentences == 0 {
		faults = append(faults, fmt.Sprintf("no sentence in it: begin its tables with %q or %q", sentencesHead, promisesHead))
	}
	return faults
}

func departuresOf(lines []string) set {
	departures, within := set{}, false
	for _, line := range lines {
		cell := departure.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, departuresHead):
			within = true
		case cell == nil:
			within = false
		case within:
			departures[cell[1]] = true
		}
	}
	return departures
}

// place checks where a sentence is decided: each `package.Name` is declared there.
func (c checker) place(cell string) (faults []string) {
	for _, quoted := range code.FindAllStringSubmatch(cell, -1) {
		at := declared.FindStringSubmatch(quoted[1])
		if at == nil {
			continue
		}
		if pkg, err := c.read(at[1]); err != nil {
			faults = append(faults, err.Error())
		} else if !pkg.declared[at[2]] {
			faults = append(faults, fmt.Sprintf("%s declares no %s: name what decides the sentence now", at[1], at[2]))
		}
	}
	return faults
}

// proof checks what stands for a sentence: tests, "later", or a departure, several of them separated by <br>.
func (c checker) proof(cell string) (faults []string) {
	for item := range strings.SplitSeq(cell, "<br>") {
		item = strings.TrimSpace(item)
		name, superseded := strings.CutPrefix(item, "superseded: ")
		switch {
		case item == "later":
		case superseded:
			if !c.departures[name] {
				faults = append(faults, fmt.Sprintf("there is no departure %q: list it under %q", name, departuresHead))
			}
		default:
			if fault := c.test(strings.Trim(item, "`")); fault != "" {
				faults = append(faults, fault)
			}
		}
	}
	return faults
}

// test says what a named test lacks; empty if it exists.
func (c checker) test(named string) string {
	parts := test.FindStringSubmatch(named)
	if parts == nil {
		return fmt.Sprintf("%q is no proof: write `package: TestName` or `package: TestName/row`, later, or superseded: a departure", named)
	}
	pkg, err := c.read(parts[1])
	switch {
	case err != nil:
		return err.Error()
	case pkg.tests[parts[2]] == nil:
		return fmt.Sprintf("%s has no %s: name the test that proves the sentence now, or write it", parts[1], parts[2])
	case parts[3] != "" && !pkg.tests[parts[2]][parts[3]] && !pkg.tests[""][parts[3]]:
		return fmt.Sprintf("%s of %s has no row %q: name the one that proves the sentence now", parts[2], parts[1], parts[3])
	}
	return ""
}

// read parses a package's files, whatever their build tags.
func (c checker) read(dir string) (*names, error) {
	if known, ok := c.packages[dir]; ok {
		return known, nil
	}
	files, err := fs.Glob(c.root, path.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("there is no package %s: name it from the repository's root", dir)
	}
	found := &names{declared: set{}, tests: map[string]set{"": {}}}
	for _, name := range files {
		text, err := fs.ReadFile(c.root, name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parsing %s: %w", name, err)
		}
		if strings.HasSuffix(name, "_test.go") {
			found.addTests(file)
		} else {
			found.addDeclared(file)
		}
	}
	c.packages[dir] = found
	return found, nil
}

func (n *names) addDeclared(file *ast.File) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			n.declared[decl.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					n.declared[spec.Name.Name] = true
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						n.declared[name.Name] = true
					}
				}
			}
		}
	}
}

func (n *names) addTests(file *ast.File) {
	for _, decl := range file.Decls {
		within := n.tests[""]
		if function, ok := decl.(*ast.FuncDecl); ok {
			within = set{}
			if function.Recv == nil {
				n.tests[function.Name.Name] = within
			}
		}
		ast.Inspect(decl, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					within[text] = true
				}
			}
			return true
		})
	}
}
