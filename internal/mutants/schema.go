package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A goPackage is what go list says of a package.
type goPackage struct {
	Dir          string
	ImportPath   string
	Name         string
	Export       string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
}

// A sourceFile is a parsed file.
type sourceFile struct {
	name    string // relative to the root of the module
	path    string
	content string
	pkg     *goPackage
	syntax  *ast.File
	tokens  *token.File
}

func (f *sourceFile) offset(p token.Pos) int { return f.tokens.Offset(p) }

func (f *sourceFile) text(from, to token.Pos) string {
	return f.content[f.offset(from):f.offset(to)]
}

// goList returns the packages that go list finds with arguments.
func goList(arguments ...string) ([]*goPackage, error) {
	cmd := exec.Command("go", append([]string{"list", "-json=Dir,ImportPath,Name,Export,GoFiles,TestGoFiles,XTestGoFiles"}, arguments...)...) //nolint:gosec,noctx // a tool
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []*goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(output))); decoder.More(); {
		p := &goPackage{}
		if err := decoder.Decode(p); err != nil { //nolint:musttag // its names are the command's
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// parse returns the files of p, without those that are generated.
func parse(root string, p *goPackage) ([]*sourceFile, error) {
	var files []*sourceFile
	fset := token.NewFileSet()
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		syntax, err := parser.ParseFile(fset, path, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		short, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		files = append(files, &sourceFile{
			name: filepath.ToSlash(short), path: path, content: string(content), pkg: p,
			syntax: syntax, tokens: fset.File(syntax.FileStart),
		})
	}
	return slices.DeleteFunc(files, func(f *sourceFile) bool { return ast.IsGenerated(f.syntax) }), nil
}

// A variant is a file with copies of its mutated functions. copies are its ranges of bytes by mutant.
type variant struct {
	content string
	copies  map[*mutant][2]int
}

// vary returns file with a copy of its function for each of the mutants, which the number of each
// in the environment chooses.
func vary(file *sourceFile, mutants []*mutant, number func(*mutant) int) variant {
	byFunction := map[*ast.FuncDecl][]*mutant{}
	for _, m := range mutants {
		byFunction[m.function] = append(byFunction[m.function], m)
	}
	var text strings.Builder
	end := 0
	for _, declaration := range file.syntax.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok || byFunction[f] == nil {
			continue
		}
		text.WriteString(file.content[end:file.offset(f.Name.End())] + "_mutant0")
		end = file.offset(f.Name.End())
	}
	text.WriteString(file.content[end:])
	v := variant{copies: map[*mutant][2]int{}}
	for _, declaration := range file.syntax.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok || byFunction[f] == nil {
			continue
		}
		for _, m := range byFunction[f] {
			start := text.Len()
			name, to := file.offset(f.Name.End()), file.offset(f.End())
			fmt.Fprintf(&text, "\n\n%s_mutant%d%s%s%s", file.content[file.offset(f.Type.Func):name], number(m),
				file.content[name:m.from], m.text, file.content[m.to:to])
			v.copies[m] = [2]int{start, text.Len()}
		}
		text.WriteString(dispatcher(file, f, byFunction[f], number))
	}
	v.content = text.String()
	return v
}

// dispatcher returns a function with f's name that calls one of its copies.
func dispatcher(file *sourceFile, f *ast.FuncDecl, mutants []*mutant, number func(*mutant) int) string {
	source := func(n ast.Node) string { return file.text(n.Pos(), n.End()) }
	signature, callee := "func ", f.Name.Name
	if f.Recv != nil {
		signature += "(mutated " + source(f.Recv.List[0].Type) + ") "
		callee = "mutated." + callee
	}
	signature += f.Name.Name
	arguments := ""
	if f.Type.TypeParams != nil {
		signature += source(f.Type.TypeParams)
		var names []string
		for _, field := range f.Type.TypeParams.List {
			for _, name := range field.Names {
				names = append(names, name.Name)
			}
		}
		arguments = "[" + strings.Join(names, ", ") + "]"
	}
	var parameters, passed []string
	for _, field := range f.Type.Params.List {
		for range max(1, len(field.Names)) {
			name := fmt.Sprintf("p%d", len(parameters))
			parameters = append(parameters, name+" "+source(field.Type))
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				name += "..."
			}
			passed = append(passed, name)
		}
	}
	signature += "(" + strings.Join(parameters, ", ") + ")"
	arguments += "(" + strings.Join(passed, ", ") + ")"
	call := func(n int) string { return fmt.Sprintf("return %s_mutant%d%s", callee, n, arguments) }
	if f.Type.Results == nil {
		call = func(n int) string { return fmt.Sprintf("%s_mutant%d%s; return", callee, n, arguments) }
	} else {
		signature += " " + source(f.Type.Results)
	}
	var cases strings.Builder
	for _, m := range mutants {
		fmt.Fprintf(&cases, "\tcase %d:\n\t\t%s\n", number(m), call(number(m)))
	}
	return fmt.Sprintf("\n\n%s {\n\tswitch activeMutant {\n%s\t}\n\t%s\n}\n", signature, cases.String(), call(0))
}

// chooser is the file that a package with mutants gets.
const chooser = `package %s

import (
	"os"
	"strconv"
)

var activeMutant, _ = strconv.Atoi(os.Getenv("MUTANT"))
`

// invalid returns the mutants of a package that do not compile. variants are its files with mutants,
// exports the compiled packages by path.
func invalid(p *goPackage, variants map[*sourceFile]variant, exports map[string]string) (map[*mutant]bool, error) {
	fset := token.NewFileSet()
	bad := map[*mutant]bool{}
	var other error
	content := map[string]any{filepath.Join(p.Dir, "mutant.go"): fmt.Sprintf(chooser, p.Name)}
	for _, name := range p.GoFiles {
		content[filepath.Join(p.Dir, name)] = nil
	}
	owner := map[string]variant{}
	for f, v := range variants {
		content[f.path], owner[f.path] = v.content, v
	}
	var files []*ast.File
	for path, text := range content {
		file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	config := types.Config{
		Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }),
		Error: func(err error) {
			failure, ok := err.(types.Error) //nolint:errorlint // as documented
			at := fset.Position(failure.Pos)
			for m, span := range owner[at.Filename].copies {
				if at.Offset >= span[0] && at.Offset < span[1] {
					bad[m] = true
					return
				}
			}
			if !ok || !failure.Soft {
				other = err
			}
		},
	}
	_, _ = config.Check(p.ImportPath, fset, files, nil)
	if len(bad) == 0 && other != nil {
		return nil, other
	}
	return bad, nil
}
