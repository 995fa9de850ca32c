package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A mutant replaces the bytes [from, to) of a file by text.
type mutant struct {
	key      string // package, function, old and new text: what a result and a reason are known by
	file     *sourceFile
	function *ast.FuncDecl
	from, to int
	text     string
	line     int // of the block of statements, in a coverage profile
}

// place returns file:line of m.
func (m *mutant) place() string {
	return fmt.Sprintf("%s:%d", m.file.name, m.file.tokens.Line(m.file.tokens.Pos(m.from)))
}

// operators are what a binary operator becomes.
var operators = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
	token.REM: {token.MUL}, token.SHL: {token.SHR}, token.SHR: {token.SHL},
	token.AND: {token.OR}, token.OR: {token.AND},
	token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN},
	token.MUL_ASSIGN: {token.QUO_ASSIGN}, token.QUO_ASSIGN: {token.MUL_ASSIGN},
	token.INC: {token.DEC}, token.DEC: {token.INC},
	token.BREAK: {token.CONTINUE}, token.CONTINUE: {token.BREAK},
}

// harmless are statements without which a program does the same, as far as tests should see.
var harmless = regexp.MustCompile(`^(defer )?[\w.]*\b([lL]og(ger)?|slog|span)\b[\w.]*\(|^panic\(|\.(Grow|Helper)\(|^runtime\.`)

var zero = regexp.MustCompile(`^(nil|0|""|false|true|[\w.]+\{\})$`) // or nearly

var spaces = regexp.MustCompile(`\s+`)

// mutantsOf returns the mutants of a file in its order.
func mutantsOf(f *sourceFile) []*mutant {
	var all []*mutant
	for _, declaration := range f.syntax.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		name := ""
		if ok {
			name = function.Name.Name
		}
		if !ok || function.Body == nil || slices.Contains([]string{"init", "main", "_", "String", "Error"}, name) {
			continue
		}
		d := &drawer{file: f, function: function}
		d.list(function.Type, function.Body)
		all = append(all, d.mutants...)
	}
	return all
}

// A drawer collects the mutants of one function.
type drawer struct {
	file     *sourceFile
	function *ast.FuncDecl
	mutants  []*mutant
	parents  []ast.Node // of the node at hand, from the outermost
}

func (d *drawer) source(n ast.Node) string { return d.file.text(n.Pos(), n.End()) }

// add adds the mutant in which node has text in place of the bytes [from, to).
func (d *drawer) add(node ast.Node, from, to token.Pos, text string) {
	shown := func(s string) string {
		s = strings.TrimSpace(spaces.ReplaceAllString(s, " "))
		if len(s) > 120 {
			s = strings.ToValidUTF8(s[:120], "") + "…"
		}
		return s
	}
	block := from
	for i, parent := range d.parents { // the conditions of a switch belong to the block that it ends
		if clause, ok := parent.(*ast.CaseClause); ok && from < clause.Colon {
			block = d.parents[i-2].Pos()
		}
	}
	changed := d.file.text(node.Pos(), from) + text + d.file.text(to, node.End())
	if strings.TrimSpace(changed) == "" {
		changed = "nothing"
	}
	d.mutants = append(d.mutants, &mutant{
		key:  fmt.Sprintf("%s %s: %s → %s", d.file.name, functionName(d.function), shown(d.source(node)), shown(changed)),
		file: d.file, function: d.function, from: d.file.offset(from), to: d.file.offset(to), text: text,
		line: d.file.tokens.Line(block),
	})
}

func (d *drawer) replace(n ast.Node, text string) { d.add(n, n.Pos(), n.End(), text) }

// replaceIn is replace; the key shows the expression or statement that n is part of, if that is short.
func (d *drawer) replaceIn(n ast.Node, text string) {
	shown := n
	if last := len(d.parents) - 1; last >= 0 && d.parents[last].End()-d.parents[last].Pos() < 100 {
		shown = d.parents[last]
	}
	d.add(shown, n.Pos(), n.End(), text)
}

// operator adds the mutants of the operator at pos in node.
func (d *drawer) operator(node ast.Node, pos token.Pos, operator token.Token) {
	for _, other := range operators[operator] {
		d.add(node, pos, pos+token.Pos(len(operator.String())), other.String())
	}
}

// list adds the mutants of the body of a function, and of the functions within it.
func (d *drawer) list(signature *ast.FuncType, body *ast.BlockStmt) {
	ast.PreorderStack(body, nil, func(n ast.Node, parents []ast.Node) bool {
		d.parents = parents
		switch n := n.(type) {
		case *ast.FuncLit:
			d.list(n.Type, n.Body)
			return false
		case *ast.GenDecl: // constants and types
			return n.Tok == token.VAR
		case *ast.ArrayType:
			return false
		case *ast.CallExpr:
			return !isCapacity(n)
		case *ast.BlockStmt:
			d.statements(n.List)
		case *ast.CaseClause:
			d.statements(n.Body)
		case *ast.CommClause:
			d.statements(n.Body)
		case *ast.IfStmt:
			if _, binary := n.Cond.(*ast.BinaryExpr); !binary {
				d.replace(n.Cond, "!("+d.source(n.Cond)+")")
			}
		case *ast.ReturnStmt:
			return d.results(signature, n)
		default:
			d.expression(n)
		}
		return true
	})
}

// expression adds the mutants of operators and literals.
func (d *drawer) expression(n ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		d.operator(n, n.OpPos, n.Op)
	case *ast.AssignStmt:
		d.operator(n, n.TokPos, n.Tok)
	case *ast.IncDecStmt:
		d.operator(n, n.TokPos, n.Tok)
	case *ast.BranchStmt:
		if n.Label == nil {
			d.operator(n, n.TokPos, n.Tok)
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT || n.Op == token.SUB {
			d.replaceIn(n, d.source(n.X))
		}
	case *ast.BasicLit:
		call, ok := d.parents[len(d.parents)-1].(*ast.CallExpr)
		if isSign := ok && d.source(call.Fun) == "math.Inf"; !isSign && (n.Kind == token.INT || n.Kind == token.FLOAT) {
			d.replaceIn(n, "("+n.Value+" + 1)")
			d.replaceIn(n, "("+n.Value+" - 1)")
		}
	case *ast.Ident:
		if n.Name == "true" || n.Name == "false" {
			d.replaceIn(n, strconv.FormatBool(n.Name == "false"))
		}
	}
}

// isCapacity reports whether call makes a slice with a capacity, or a map with a size: hints.
func isCapacity(call *ast.CallExpr) bool {
	name, ok := call.Fun.(*ast.Ident)
	if !ok || name.Name != "make" || len(call.Args) < 2 {
		return false
	}
	_, isMap := call.Args[0].(*ast.MapType)
	return isMap || len(call.Args) == 3
}

// statements adds the mutants that leave out one of the statements.
func (d *drawer) statements(list []ast.Stmt) {
	for _, s := range list {
		assignment, assigns := s.(*ast.AssignStmt)
		switch s.(type) {
		case *ast.ExprStmt, *ast.AssignStmt, *ast.IncDecStmt, *ast.GoStmt, *ast.DeferStmt, *ast.SendStmt:
			defines := assigns && assignment.Tok == token.DEFINE
			if !defines && !harmless.MatchString(d.source(s)) {
				d.replace(s, "")
			}
		default:
		}
	}
}

// results adds the mutants of a return: zero values, and success in place of an error or a false. It
// returns false if there is one, beside which nobody looks at the other results.
func (d *drawer) results(signature *ast.FuncType, n *ast.ReturnStmt) bool {
	if signature.Results == nil || len(n.Results) == 0 {
		return true
	}
	var zeros []string
	for _, field := range signature.Results.List {
		for range max(1, len(field.Names)) {
			zeros = append(zeros, "*new("+d.source(field.Type)+")")
		}
	}
	if slices.ContainsFunc(n.Results, func(r ast.Expr) bool { return !zero.MatchString(d.source(r)) }) {
		d.replace(n, "return "+strings.Join(zeros, ", "))
	}
	last := n.Results[len(n.Results)-1]
	switch {
	case len(n.Results) == 1 || len(n.Results) < len(zeros):
		return true
	case zeros[len(zeros)-1] == "*new(error)" && d.source(last) != "nil":
		d.replace(last, "nil")
		return false
	case d.source(last) == strconv.FormatBool(false):
		d.replace(last, "true")
		return false
	default:
		return true
	}
}

// functionName returns the name of a function with its receiver's type.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	for {
		switch inner := t.(type) {
		case *ast.StarExpr:
			t = inner.X
		case *ast.IndexExpr:
			t = inner.X
		case *ast.IndexListExpr:
			t = inner.X
		case *ast.Ident:
			return inner.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}
