package server_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// hostile is one bad request with the code that it deserves.
type hostile struct {
	label   string
	method  string // of the contract, without its package
	request proto.Message
	code    codes.Code
}

// newMessage returns an empty message.
func newMessage(t testing.TB, descriptor protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(descriptor.FullName())
	require.NoError(t, err)
	return kind.New().Interface()
}

// call sends a request, and reads a stream of answers to its end, or three of them.
func call(ctx context.Context, t testing.TB, conn *grpc.ClientConn, method protoreflect.MethodDescriptor, req proto.Message) error {
	t.Helper()
	path := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
	if !method.IsStreamingServer() && !method.IsStreamingClient() {
		return conn.Invoke(ctx, path, req, newMessage(t, method.Output()))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{
		ServerStreams: method.IsStreamingServer(), ClientStreams: method.IsStreamingClient(),
	}, path)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(req); err != nil && err != io.EOF { //nolint:errorlint // grpc returns io.EOF itself
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for range 3 {
		if err := stream.RecvMsg(newMessage(t, method.Output())); err != nil {
			if err == io.EOF { //nolint:errorlint // grpc returns io.EOF itself
				return nil
			}
			return err
		}
	}
	return nil
}

// leaf is a value in a message, which set replaces.
type leaf struct {
	path  string
	field protoreflect.FieldDescriptor
	set   func(protoreflect.Value)
}

// leaves calls fn for every scalar that is set in a message, and for every list as a
// whole.
func leaves(path string, m protoreflect.Message, fn func(leaf)) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		at := path + string(field.Name())
		switch {
		case field.IsMap():
		case field.IsList():
			fn(leaf{at, field, func(v protoreflect.Value) { m.Set(field, v) }})
			list := value.List()
			for i := range list.Len() {
				element := fmt.Sprintf("%s[%d]", at, i)
				if field.Message() != nil {
					leaves(element+".", list.Get(i).Message(), fn)
				} else {
					fn(leaf{element, field, func(v protoreflect.Value) { list.Set(i, v) }})
				}
			}
		case field.Message() != nil:
			leaves(at+".", value.Message(), fn)
		default:
			fn(leaf{at, field, func(v protoreflect.Value) { m.Set(field, v) }})
		}
		return true
	})
}

// badScalars returns values that no field of a kind may have.
func badScalars(field protoreflect.FieldDescriptor) map[string]protoreflect.Value {
	switch field.Kind() {
	case protoreflect.DoubleKind:
		return map[string]protoreflect.Value{
			"NaN":  protoreflect.ValueOfFloat64(math.NaN()),
			"+Inf": protoreflect.ValueOfFloat64(math.Inf(1)),
			"-Inf": protoreflect.ValueOfFloat64(math.Inf(-1)),
		}
	case protoreflect.EnumKind:
		return map[string]protoreflect.Value{
			"99": protoreflect.ValueOfEnum(99),
			"-1": protoreflect.ValueOfEnum(-1),
		}
	case protoreflect.StringKind:
		return map[string]protoreflect.Value{"100,000 characters": protoreflect.ValueOfString(strings.Repeat("a", 100_000))}
	case protoreflect.Int32Kind:
		return map[string]protoreflect.Value{
			"smallest": protoreflect.ValueOfInt32(math.MinInt32),
			"largest":  protoreflect.ValueOfInt32(math.MaxInt32),
		}
	case protoreflect.Int64Kind:
		return map[string]protoreflect.Value{"smallest": protoreflect.ValueOfInt64(math.MinInt64)}
	default:
		return nil
	}
}

// hostileScalars replaces every scalar of a valid request by values that none may have,
// and repeats every list 2,000 times.
func hostileScalars(t testing.TB, method string, valid func() proto.Message) []hostile {
	t.Helper()
	var all []hostile
	var paths []string
	leaves("", valid().ProtoReflect(), func(l leaf) { paths = append(paths, l.path) })
	change := func(path, label string, value func(leaf, protoreflect.Message) protoreflect.Value) {
		req := valid()
		leaves("", req.ProtoReflect(), func(l leaf) {
			if l.path == path {
				l.set(value(l, req.ProtoReflect()))
			}
		})
		all = append(all, hostile{fmt.Sprintf("%s = %s", path, label), method, req, codes.InvalidArgument})
	}
	for _, path := range paths {
		isElement := strings.HasSuffix(path, "]")
		leaves("", valid().ProtoReflect(), func(l leaf) {
			switch {
			case l.path != path:
			case l.field.IsList() && !isElement:
				req := valid()
				leaves("", req.ProtoReflect(), func(other leaf) {
					if other.path != path {
						return
					}
					parent := listAt(req.ProtoReflect(), path)
					first := parent.Get(0)
					for range 2000 {
						parent.Append(first)
					}
				})
				all = append(all, hostile{path + " = 2,000 times the first", method, req, codes.InvalidArgument})
			default:
				for label, v := range badScalars(l.field) {
					change(path, label, func(leaf, protoreflect.Message) protoreflect.Value { return v })
				}
			}
		})
	}
	slices.SortFunc(all, func(a, b hostile) int { return strings.Compare(a.label, b.label) })
	return all
}

// listAt returns the list at a path that leaves made.
func listAt(m protoreflect.Message, path string) (list protoreflect.List) {
	var find func(prefix string, m protoreflect.Message)
	find = func(prefix string, m protoreflect.Message) {
		m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
			at := prefix + string(field.Name())
			switch {
			case field.IsMap():
			case field.IsList():
				if at == path {
					list = m.Mutable(field).List()
				}
				for i := 0; field.Message() != nil && i < value.List().Len(); i++ {
					find(fmt.Sprintf("%s[%d].", at, i), value.List().Get(i).Message())
				}
			case field.Message() != nil:
				find(at+".", value.Message())
			}
			return list == nil
		})
	}
	find("", m)
	return list
}

// badNames are no names of studies, nor of trials.
var badNames = []string{
	"", "/", ".", "..", "studies", "studies/", "studies//", "/studies/s", "studies/s/", "studies/../s", "studies/./s",
	"studies/..", "studies/s/..", "Studies/s", "STUDIES/S", "studies/S", "studies/s s", " studies/s", "studies/s ",
	"studies/s\n", "studies/s\x00", "studies/s%2Ftrials", "studies/s%00", "studies/1s", "studies/-s", "studies/s-",
	"studies/s_t", "studies/é", "studies/ſ", "studies/s?x=1", "studies/s#x", "studies/s;x", "studies/s:suggest",
	"studies/s\\trials", "studies/*", "studies/-", "studies/${s}", "studies/{study}", "studies/s/trials", "studies/s/trials/",
	"studies/s/trials/0", "studies/s/trials/-1", "studies/s/trials/+1", "studies/s/trials/01", "studies/s/trials/1.0",
	"studies/s/trials/1e3", "studies/s/trials/0x1", "studies/s/trials/1 ", "studies/s/trials/ 1", "studies/s/trials/1/",
	"studies/s/trials/1/2", "studies/s/trials/../1", "studies/s/trials/9223372036854775808", "studies/s/trials/one",
	"studies/s/trials/١", "studies/s/trials/NaN", "trials/1", "studies/s/releases/1", "file:///etc/passwd", "../../etc/passwd",
	"studies/" + strings.Repeat("s", 64), "studies/" + strings.Repeat("s", 100_000), strings.Repeat("studies/", 1000),
	"studies/s/trials/" + strings.Repeat("1", 10_000),
}

// hostileNames gives every method that takes a name the bad ones.
func hostileNames(t testing.TB) []hostile {
	t.Helper()
	var all []hostile
	for label, method := range servertest.Methods() {
		for _, fieldName := range []protoreflect.Name{"name", "parent"} {
			field := method.Input().Fields().ByName(fieldName)
			if field == nil {
				continue
			}
			for _, name := range badNames {
				if label == "ReleaseService.GetRelease" && name == "studies/s/releases/1" {
					continue // it is one
				}
				req := newMessage(t, method.Input())
				req.ProtoReflect().Set(field, protoreflect.ValueOfString(name))
				all = append(all, hostile{fmt.Sprintf("%s = %.40q", fieldName, name), label, req, codes.InvalidArgument})
			}
		}
	}
	slices.SortFunc(all, func(a, b hostile) int { return strings.Compare(a.method+a.label, b.method+b.label) })
	return all
}

// badExpressions are no expressions over the parameters of fullStudy, whatever they
// should yield: they do not parse, have the wrong type, cost too much, or fail.
var badExpressions = []string{
	"", " ", "(", ")", "((", "+", "1 +", "1 / 0", "1 % 0", "lot / 0", "lot % 0", "unknown", "epsilon", "error", "this", "self",
	"lot epochs", "lot;epochs", "lot = 1", "lot := 1", "\"text\"", "'text'", "b'bytes'", "null", "[]", "[1]", "{}", "{'a': 1}",
	"lot.field", "lot[0]", "lot()", "lot(1)", "type(lot)", "string(lot)", "bytes('x')", "duration('1s')", "timestamp('2020-01-01T00:00:00Z')",
	"optimizer", "optimizer + 1", "optimizer.matches('(a+)+$')", "size(optimizer) / 0", "-optimizer", "!lot", "lot && epochs",
	"lot ? 1 : 2", "[1, 2, 3].map(x, x)", "[1, 2, 3].filter(x, x > 1)", "[1][5]", "{'a': 1}['b']", "beta", "1.0 / beta", "rate + lot",
	"math.sqrt('x')", "math.unknown(1)", "math.log()", "math.sqrt(1, 2)", "9223372036854775807 + lot * 9223372036854775807",
	"99999999999999999999999", "1e999999", "0x", "1u", "google.protobuf.Value{}", "dyn(optimizer) + 1", "has(lot)", "lot in [1]  + 1",
	"__import__('os').system('id')", "${lot}", "$(id)", "`id`", "lot\x00", "lot // comment\n)", "\u202elot", "ｌｏｔ",
	strings.Repeat("(", 5000) + "lot" + strings.Repeat(")", 5000),
	strings.Repeat("-", 10_001) + "lot",
	strings.Repeat("!", 10_001) + "true",
	"lot" + strings.Repeat(" + lot", 50_000),
	strings.Repeat("[", 3000) + strings.Repeat("]", 3000),
	strings.Repeat("true ? ", 3000) + "1" + strings.Repeat(" : 0", 3000),
	bomb(8, 10),
	bomb(12, 4),
	"'" + strings.Repeat("a", 100_000) + "'.size()",
}

// bomb is an expression whose evaluation takes width^depth steps.
func bomb(depth, width int) string {
	list := "[" + strings.TrimSuffix(strings.Repeat("1, ", width), ", ") + "]"
	e := "1"
	for i := range depth {
		e = fmt.Sprintf("%s.map(x%d, %s)", list, i, e)
	}
	return e + " == []"
}

// hostileExpressions puts bad expressions wherever a spec takes one.
func hostileExpressions(t testing.TB) []hostile {
	t.Helper()
	places := map[string]func(*dparetov1.StudySpec, string){
		"parameter_constraints": func(s *dparetov1.StudySpec, e string) { s.ParameterConstraints[0] = e },
		"expression": func(s *dparetov1.StudySpec, e string) {
			s.Metrics[2].GetComputed().Function = &dparetov1.ComputedSource_Expression{Expression: e}
		},
		"batch_size": func(s *dparetov1.StudySpec, e string) {
			s.Metrics[0].GetComputed().GetPrivacy().GetDpSgd().BatchSize = e
		},
		"noise_multiplier": func(s *dparetov1.StudySpec, e string) {
			s.Metrics[0].GetComputed().GetPrivacy().GetDpSgd().NoiseMultiplier = e
		},
	}
	var all []hostile
	for place, put := range places {
		for _, e := range badExpressions {
			req := servertest.FullRequest(t)
			put(req.GetStudy().GetSpec(), e)
			all = append(all, hostile{fmt.Sprintf("%s = %.60q", place, e), "StudyService.CreateStudy", req, codes.InvalidArgument})
		}
	}
	return all
}

// hostileSpecs are specs that are wrong as a whole.
func hostileSpecs(t testing.TB) []hostile {
	t.Helper()
	change := map[string]func(*dparetov1.CreateStudyRequest){
		"no study":       func(r *dparetov1.CreateStudyRequest) { r.Study = nil },
		"no spec":        func(r *dparetov1.CreateStudyRequest) { r.Study.Spec = nil },
		"empty spec":     func(r *dparetov1.CreateStudyRequest) { r.Study.Spec = new(dparetov1.StudySpec) },
		"no parameters":  func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Parameters = nil },
		"no metrics":     func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Metrics = nil },
		"null parameter": func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Parameters[0] = new(dparetov1.ParameterSpec) },
		"null metric":    func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Metrics[0] = new(dparetov1.MetricSpec) },
		"same parameter": func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Parameters[1] = r.GetStudy().GetSpec().GetParameters()[0]
		},
		"same metric": func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Metrics[1] = r.GetStudy().GetSpec().GetMetrics()[0]
		},
		"metric is a parameter": func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Metrics[1].Id = "lot" },
		"empty range":           func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Parameters[1].GetIntegerDomain().Max = 8 },
		"inverted range":        func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Parameters[2].GetDoubleDomain().Max = 1e-9 },
		"log of zero":           func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Parameters[2].GetDoubleDomain().Min = 0 },
		"decreasing values": func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Parameters[4].GetDiscreteDomain().Values = []float64{2, 1}
		},
		"one value": func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Parameters[4].GetDiscreteDomain().Values = []float64{2}
		},
		"same categories": func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Parameters[5].GetCategoricalDomain().Categories = []string{"a", "a"}
		},
		"empty category": func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Parameters[5].GetCategoricalDomain().Categories = []string{"a", ""}
		},
		"own parent":        func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Parameters[6].GetCondition().Parent = "beta" },
		"no such parent":    func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Parameters[6].GetCondition().Parent = "none" },
		"parent of doubles": func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Parameters[6].GetCondition().Parent = "rate" },
		"no such choice": func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Parameters[6].GetCondition().Values[0] = &dparetov1.Value{Kind: &dparetov1.Value_StringValue{StringValue: "x"}}
		},
		"choice of another type": func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Parameters[6].GetCondition().Values[0] = &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: 1}}
		},
		"deep conditions": func(r *dparetov1.CreateStudyRequest) {
			deepConditions(r.GetStudy().GetSpec(), 101)
		},
		"cyclic conditions": func(r *dparetov1.CreateStudyRequest) {
			deepConditions(r.GetStudy().GetSpec(), 10)
			p := r.GetStudy().GetSpec().GetParameters()
			p[len(p)-10].Condition = &dparetov1.Condition{
				Parent: p[len(p)-1].GetId(), Values: []*dparetov1.Value{{Kind: &dparetov1.Value_StringValue{StringValue: "on"}}},
			}
		},
		"deep composition": func(r *dparetov1.CreateStudyRequest) {
			privacy := r.GetStudy().GetSpec().GetMetrics()[0].GetComputed().GetPrivacy()
			for range 500 {
				privacy = &dparetov1.PrivacySpec{Mechanism: &dparetov1.PrivacySpec_Composition{Composition: &dparetov1.CompositionMechanism{
					Parts: []*dparetov1.CompositionMechanism_Part{{Mechanism: privacy, Count: "2"}},
				}}}
			}
			r.Study.Spec.Metrics[0].GetComputed().Function = &dparetov1.ComputedSource_Privacy{Privacy: privacy}
		},
		"deep selection": func(r *dparetov1.CreateStudyRequest) {
			privacy := r.GetStudy().GetSpec().GetMetrics()[0].GetComputed().GetPrivacy()
			for range 500 {
				privacy = &dparetov1.PrivacySpec{Mechanism: &dparetov1.PrivacySpec_RepeatedSelection{
					RepeatedSelection: &dparetov1.RepeatedSelectionMechanism{Base: privacy, MeanRuns: "2"},
				}}
			}
			r.Study.Spec.Metrics[0].GetComputed().Function = &dparetov1.ComputedSource_Privacy{Privacy: privacy}
		},
		"checkpoint of doubles": func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.CheckpointParameter = "rate" },
		"no such checkpoint":    func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.CheckpointParameter = "none" },
		"no such cost": func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Cost.Measure = &dparetov1.CostSpec_Metric{Metric: "none"}
		},
		"no bounds":             func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Metrics[2].Bounds = nil },
		"no reference":          func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Metrics[0].ReferenceValue = nil },
		"no source":             func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Metrics[1].Source = nil },
		"impossible constraint": func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.ParameterConstraints = []string{"false"} },
		"too many labels": func(r *dparetov1.CreateStudyRequest) {
			for i := range 1000 {
				r.Study.Labels[fmt.Sprint(i)] = "v"
			}
		},
		"long label": func(r *dparetov1.CreateStudyRequest) { r.Study.Labels["k"] = strings.Repeat("v", 1000) },
		"long key":   func(r *dparetov1.CreateStudyRequest) { r.Study.Labels[strings.Repeat("k", 1000)] = "v" },
		"empty key":  func(r *dparetov1.CreateStudyRequest) { r.Study.Labels[""] = "v" },
		"long setting": func(r *dparetov1.CreateStudyRequest) {
			r.Study.Spec.Trainer.Settings["k"] = strings.Repeat("v", 100_000)
		},
		"no trainer":    func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Trainer.Name = "" },
		"no lease":      func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Lease.Duration.Seconds = 0 },
		"past lease":    func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Lease.Duration.Seconds = -60 },
		"endless lease": func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Lease.Duration.Seconds = math.MaxInt64 },
		"broken lease":  func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Lease.Duration.Nanos = math.MaxInt32 },
		"past budget":   func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Budget.MaxDuration.Seconds = -1 },
	}
	for _, id := range []string{"", "S", "1", "-", "a-", "a_b", "a/b", "..", "a.b", "é", "a b", strings.Repeat("a", 64), "a\x00", "a\n"} {
		change[fmt.Sprintf("study_id = %.10q", id)] = func(r *dparetov1.CreateStudyRequest) { r.StudyId = id }
	}
	for _, id := range []string{"", "1a", "_a", "a-b", "a.b", "a b", "é", "a\x00", "true", "null", "in", "math", strings.Repeat("a", 65)} {
		change[fmt.Sprintf("parameter %.10q", id)] = func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Parameters[2].Id = id }
		if !slices.Contains([]string{"true", "null", "in", "math"}, id) {
			change[fmt.Sprintf("metric %.10q", id)] = func(r *dparetov1.CreateStudyRequest) { r.Study.Spec.Metrics[1].Id = id }
		}
	}
	var all []hostile
	for label, fn := range change {
		req := servertest.FullRequest(t)
		fn(req)
		all = append(all, hostile{label, "StudyService.CreateStudy", req, codes.InvalidArgument})
	}
	return all
}

// deepConditions adds parameters each of which exists only if the one before does.
func deepConditions(spec *dparetov1.StudySpec, depth int) {
	parent, value := "optimizer", "adam"
	for i := range depth {
		id := fmt.Sprintf("level%d", i)
		spec.Parameters = append(spec.Parameters, &dparetov1.ParameterSpec{
			Id:     id,
			Domain: &dparetov1.ParameterSpec_CategoricalDomain{CategoricalDomain: &dparetov1.CategoricalDomain{Categories: []string{"on", "off"}}},
			Condition: &dparetov1.Condition{
				Parent: parent, Values: []*dparetov1.Value{{Kind: &dparetov1.Value_StringValue{StringValue: value}}},
			},
		})
		parent, value = id, "on"
	}
}

// hostileTrials are trials of fullStudy that cannot be.
func hostileTrials() []hostile {
	bad := map[string][]any{
		"epochs":    {nil, 4.0, "4", int64(0), int64(65), int64(-1), int64(math.MaxInt64), int64(math.MinInt64), math.NaN()},
		"lot":       {nil, 128.0, "128", int64(7), int64(513), int64(1 << 60)},
		"rate":      {nil, int64(1), "0.1", 0.0, -0.1, 1.1, math.NaN(), math.Inf(1), math.Inf(-1), 5e-324, math.MaxFloat64},
		"noise":     {nil, int64(1), "", 0.0, 1e300, math.NaN()},
		"depth":     {nil, int64(2), "2", 3.0, 2.0000001, math.NaN(), math.Inf(1)},
		"optimizer": {nil, int64(0), 0.0, "", "ADAM", "adam ", "rmsprop", strings.Repeat("adam", 10_000)},
		"beta":      {nil, int64(0), "0.9", -1e-9, 1.0001, math.NaN()},
	}
	var all []hostile
	add := func(label string, trial *dparetov1.Trial) {
		all = append(all, hostile{
			label, "StudyService.CreateTrial",
			&dparetov1.CreateTrialRequest{Parent: "studies/full", Trial: trial}, codes.InvalidArgument,
		})
	}
	for id, values := range bad {
		missing := servertest.FullParameters()
		delete(missing, id)
		add("without "+id, &dparetov1.Trial{Parameters: missing})
		for _, v := range values {
			parameters := servertest.FullParameters()
			parameters[id] = servertest.Value(v)
			add(fmt.Sprintf("%s = %.20v", id, v), &dparetov1.Trial{Parameters: parameters})
		}
	}
	for _, id := range []string{"", "unknown", "Epochs", "epochs ", "error", "epsilon", "../epochs", strings.Repeat("x", 100_000)} {
		parameters := servertest.FullParameters()
		parameters[id] = servertest.Value(1.0)
		add(fmt.Sprintf("also %.20q", id), &dparetov1.Trial{Parameters: parameters})
	}
	inactive := servertest.FullParameters()
	inactive["optimizer"] = servertest.Value("sgd")
	add("value of an inactive parameter", &dparetov1.Trial{Parameters: inactive})
	forbidden := servertest.FullParameters()
	forbidden["epochs"], forbidden["lot"] = servertest.Value(int64(64)), servertest.Value(int64(512+0))
	forbidden["lot"] = servertest.Value(int64(512))
	forbidden["epochs"] = servertest.Value(int64(64))
	all = append(all, hostile{
		"no trial", "StudyService.CreateTrial", &dparetov1.CreateTrialRequest{Parent: "studies/full"}, codes.InvalidArgument,
	})
	add("a name", &dparetov1.Trial{Name: "studies/full/trials/99", Parameters: servertest.FullParameters()})
	add("a long note", &dparetov1.Trial{Note: strings.Repeat("n", 20_000), Parameters: servertest.FullParameters()})
	add("a bad original", &dparetov1.Trial{ReplicateOf: "studies/full/trials/x"})
	add("an original of another study", &dparetov1.Trial{ReplicateOf: "studies/other/trials/1"})
	add("a long label", &dparetov1.Trial{Labels: map[string]string{"k": strings.Repeat("v", 300)}, Parameters: servertest.FullParameters()})
	for label, final := range badMeasurements() {
		add("final measurement: "+label, &dparetov1.Trial{Parameters: servertest.FullParameters(), FinalMeasurement: final})
	}
	return all
}

// badMeasurements are measurements that no trial of fullStudy with 4 epochs can have.
func badMeasurements() map[string]*dparetov1.Measurement {
	type metrics = map[string]*dparetov1.MetricValue
	one := func(v float64) *dparetov1.MetricValue { return &dparetov1.MetricValue{Runs: []float64{v, v}} }
	runs := func(v ...float64) *dparetov1.MetricValue { return &dparetov1.MetricValue{Runs: v} }
	bad := map[string]*dparetov1.Measurement{
		"unknown metric":    {Metrics: metrics{"error": one(0.1), "seconds": one(1), "unknown": one(1)}},
		"empty metric":      {Metrics: metrics{"error": one(0.1), "seconds": one(1), "": one(1)}},
		"a parameter":       {Metrics: metrics{"error": one(0.1), "seconds": one(1), "lot": one(1)}},
		"no error":          {Metrics: metrics{"seconds": one(1)}},
		"nothing":           {},
		"no value":          {Metrics: metrics{"error": {}, "seconds": one(1)}},
		"both":              {Metrics: metrics{"error": {Value: new(float64), Runs: []float64{0.1, 0.2}}}},
		"a single run":      {Metrics: metrics{"error": runs(0.1), "seconds": one(1)}},
		"a single value":    {Metrics: metrics{"error": {Value: new(0.1)}, "seconds": one(1)}},
		"other runs":        {Metrics: metrics{"error": one(0.1), "seconds": runs(1, 1, 1)}},
		"too many runs":     {Metrics: metrics{"error": runs(make([]float64, 10_001)...), "seconds": one(1)}},
		"negative step":     {Step: -1, Metrics: metrics{"error": one(0.1), "seconds": one(1)}},
		"step beyond":       {Step: 5, Metrics: metrics{"error": one(0.1), "seconds": one(1)}},
		"largest step":      {Step: math.MaxInt64, Metrics: metrics{"error": one(0.1), "seconds": one(1)}},
		"smallest step":     {Step: math.MinInt64, Metrics: metrics{"error": one(0.1), "seconds": one(1)}},
		"NaN among runs":    {Metrics: metrics{"error": runs(0.1, math.NaN()), "seconds": one(1)}},
		"infinity in runs":  {Metrics: metrics{"error": runs(0.1, math.Inf(1)), "seconds": one(1)}},
		"negative cost":     {Metrics: metrics{"error": one(0.1), "seconds": one(-1)}},
		"cost of 0":         {Metrics: metrics{"error": one(0.1), "seconds": one(0)}},
		"NaN tracked":       {Metrics: metrics{"error": one(0.1), "seconds": one(math.NaN())}},
		"NaN computed":      {Metrics: metrics{"error": one(0.1), "seconds": one(1), "epsilon": one(math.NaN())}},
		"infinite computed": {Metrics: metrics{"error": one(0.1), "seconds": one(1), "size": one(math.Inf(-1))}},
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e101, -1e101, 1.0000001, -0.0000001, 2, -1, math.MaxFloat64} {
		bad[fmt.Sprintf("error %g", v)] = &dparetov1.Measurement{Metrics: metrics{"error": one(v), "seconds": one(1)}}
	}
	for _, se := range []float64{math.NaN(), math.Inf(1), -1e-9, -1} {
		e := &dparetov1.MetricValue{Value: new(0.1), StandardError: &se}
		bad[fmt.Sprintf("standard error %g", se)] = &dparetov1.Measurement{Metrics: metrics{"error": e, "seconds": one(1)}}
	}
	return bad
}

// hostileCalls are bad requests to workers' methods, for a trial of fullStudy that is
// held under a token, and other small ones.
func hostileCalls(trial, token string) []hostile {
	const study = "studies/full"
	long := strings.Repeat("x", 100_000)
	var all []hostile
	add := func(label, method string, req proto.Message, code codes.Code) {
		all = append(all, hostile{label, method, req, code})
	}
	for label, m := range badMeasurements() {
		add("measurement: "+label, "StudyService.CompleteTrial", &dparetov1.CompleteTrialRequest{
			Name: trial, LeaseToken: token, Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: m},
		}, codes.InvalidArgument)
		add("measurement: "+label, "StudyService.AddMeasurement", &dparetov1.AddMeasurementRequest{
			Name: trial, LeaseToken: token, Measurement: m,
		}, codes.InvalidArgument)
	}
	add("no outcome", "StudyService.CompleteTrial", &dparetov1.CompleteTrialRequest{Name: trial, LeaseToken: token}, codes.InvalidArgument)
	add("no measurement", "StudyService.AddMeasurement", &dparetov1.AddMeasurementRequest{Name: trial, LeaseToken: token}, codes.InvalidArgument)
	for _, reason := range []string{"", long} {
		add(fmt.Sprintf("infeasible %.5q", reason), "StudyService.CompleteTrial", &dparetov1.CompleteTrialRequest{
			Name: trial, LeaseToken: token, Outcome: &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: reason}},
		}, codes.InvalidArgument)
		add(fmt.Sprintf("failure %.5q", reason), "StudyService.CompleteTrial", &dparetov1.CompleteTrialRequest{
			Name: trial, LeaseToken: token, Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: reason}},
		}, codes.InvalidArgument)
	}
	add("long reason", "StudyService.ReleaseTrial", &dparetov1.ReleaseTrialRequest{Name: trial, LeaseToken: token, Reason: long}, codes.InvalidArgument)
	add("long reason", "StudyService.StopTrial", &dparetov1.StopTrialRequest{Name: trial, Reason: long}, codes.InvalidArgument)
	for _, wrong := range []string{"", "x", strings.ToUpper(token) + "!", token + "0", token[1:], long} {
		good := &dparetov1.Measurement{Metrics: map[string]*dparetov1.MetricValue{"error": {Runs: []float64{0.1, 0.2}}, "seconds": {Runs: []float64{1, 1}}}}
		add(fmt.Sprintf("token %.5q", wrong), "StudyService.CompleteTrial", &dparetov1.CompleteTrialRequest{
			Name: trial, LeaseToken: wrong, Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: good},
		}, codes.FailedPrecondition)
		withStep := proto.CloneOf(good)
		withStep.Step = 1
		add(fmt.Sprintf("token %.5q", wrong), "StudyService.AddMeasurement", &dparetov1.AddMeasurementRequest{
			Name: trial, LeaseToken: wrong, Measurement: withStep,
		}, codes.FailedPrecondition)
		add(fmt.Sprintf("token %.5q", wrong), "StudyService.ReleaseTrial", &dparetov1.ReleaseTrialRequest{Name: trial, LeaseToken: wrong}, codes.FailedPrecondition)
	}
	for _, count := range []int32{-1, 1001, math.MaxInt32, math.MinInt32} {
		add(fmt.Sprintf("count %d", count), "StudyService.SuggestTrials",
			&dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "w", Count: count}, codes.InvalidArgument)
		add(fmt.Sprintf("page of %d", count), "StudyService.ListTrials", &dparetov1.ListTrialsRequest{Parent: study, PageSize: count}, codes.InvalidArgument)
		add(fmt.Sprintf("page of %d", count), "StudyService.ListStudies", &dparetov1.ListStudiesRequest{PageSize: count}, codes.InvalidArgument)
	}
	for _, worker := range []string{"", strings.Repeat("w", 201), long} {
		add(fmt.Sprintf("worker %.5q", worker), "StudyService.SuggestTrials",
			&dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: worker}, codes.InvalidArgument)
	}
	for _, page := range []string{"x", "=", "AAAA", "c3R1ZGllcwBz!", "../..", long, "c3R1ZGllcy9vdGhlci90cmlhbHMAMQ"} {
		add(fmt.Sprintf("token %.20q", page), "StudyService.ListTrials", &dparetov1.ListTrialsRequest{Parent: study, PageToken: page}, codes.InvalidArgument)
		add(fmt.Sprintf("token %.20q", page), "StudyService.ListStudies", &dparetov1.ListStudiesRequest{PageToken: page}, codes.InvalidArgument)
	}
	many := make(map[string]string)
	for i := range 1001 {
		many[fmt.Sprintf("%s/trials/%d", study, i+1)] = "t"
	}
	add("1,001 leases", "StudyService.RenewLeases", &dparetov1.RenewLeasesRequest{Parent: study, LeaseTokens: many}, codes.InvalidArgument)
	add("no leases", "StudyService.RenewLeases", &dparetov1.RenewLeasesRequest{Parent: study}, codes.InvalidArgument)
	for _, name := range badNames[:20] {
		add(fmt.Sprintf("lease of %.20q", name), "StudyService.RenewLeases",
			&dparetov1.RenewLeasesRequest{Parent: study, LeaseTokens: map[string]string{name: "t"}}, codes.InvalidArgument)
	}
	for _, kind := range []dparetov1.FrontKind{0, -1, 99} {
		add(fmt.Sprintf("kind %d", kind), "FrontService.GetFront", &dparetov1.GetFrontRequest{Name: study, Kind: kind}, codes.InvalidArgument)
	}
	add("absent trial", "StudyService.GetTrial", &dparetov1.GetTrialRequest{Name: study + "/trials/9223372036854775807"}, codes.NotFound)
	add("another etag", "StudyService.DeleteStudy", &dparetov1.DeleteStudyRequest{Name: study, Etag: "x"}, codes.FailedPrecondition)
	add("5 MiB", "StudyService.StopTrial", &dparetov1.StopTrialRequest{Name: trial, Reason: strings.Repeat("x", 5<<20)}, codes.ResourceExhausted)
	return all
}

// privacyRequests are valid requests to PrivacyService.
func privacyRequests(t testing.TB) map[string]func() proto.Message {
	t.Helper()
	parse := func(text string, empty proto.Message) func() proto.Message {
		return func() proto.Message {
			m := empty.ProtoReflect().New().Interface()
			require.NoError(t, protojson.Unmarshal([]byte(text), m))
			return m
		}
	}
	const privacy = `"privacy": {"dpSgd": {"sampling": "SAMPLING_FIXED_SIZE", "datasetSize": "30956", "batchSize": "128", "noiseMultiplier": "noise", "epochs": "epochs"},
		"delta": 1e-5, "adjacency": "ADJACENCY_REPLACE_ONE", "accountant": "ACCOUNTANT_RDP", "conversion": "CONVERSION_IMPROVED"}`
	return map[string]func() proto.Message{
		"PrivacyService.ComputeEpsilon": parse(`{`+privacy+`, "parameters": {"noise": {"doubleValue": 1}, "epochs": {"intValue": 4}}, "lengths": [1, 2]}`,
			new(dparetov1.ComputeEpsilonRequest)),
		"PrivacyService.CalibrateMechanism": parse(`{`+privacy+`, "parameters": {"epochs": {"intValue": 4}}, "solveFor": "noise", "min": 0.5, "max": 50, "targetEpsilon": 1}`,
			new(dparetov1.CalibrateMechanismRequest)),
		"PrivacyService.ComputeTradeoff": parse(`{`+privacy+`, "parameters": {"noise": {"doubleValue": 1}, "epochs": {"intValue": 4}}, "falsePositiveRates": [0.01, 0.1]}`,
			new(dparetov1.ComputeTradeoffRequest)),
		"PrivacyService.PriceSearch": parse(`{"privacy": {"gaussian": {"sensitivity": "1.0", "standardDeviation": "noise"}, "delta": 1e-6, "adjacency": "ADJACENCY_REPLACE_ONE"},
			"parameters": {"noise": {"doubleValue": 10}}, "runs": 8, "portfolios": [2], "testRecords": 1000, "testNoise": 0.01}`, new(dparetov1.PriceSearchRequest)),
	}
}

// A server answers whatever is sent with the code that it deserves, and goes on.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	require.NoError(t, require.ErrOf(f.Studies.CreateStudy(t.Context(), servertest.FullRequest(t))))
	held, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{
		Parent: "studies/full", Trial: &dparetov1.Trial{Parameters: servertest.FullParameters()},
	})
	require.NoError(t, err)
	trial := f.One("studies/full", "w")
	if trial.GetName() != held.GetTrial().GetName() {
		t.Fatalf("%s was handed out instead of %s", trial.GetName(), held.GetTrial().GetName())
	}

	all := hostileNames(t)
	all = append(all, hostileScalars(t, "StudyService.CreateStudy", func() proto.Message { return servertest.FullRequest(t) })...)
	all = append(all, hostileExpressions(t)...)
	all = append(all, hostileSpecs(t)...)
	all = append(all, hostileTrials()...)
	all = append(all, hostileCalls(trial.GetName(), trial.GetLease().GetToken())...)
	for method, valid := range privacyRequests(t) {
		if err := call(t.Context(), t, f.Conn, servertest.Methods()[method], valid()); err != nil {
			t.Errorf("%s: %v", method, err)
		}
		all = append(all, slices.DeleteFunc(hostileScalars(t, method, valid), func(h hostile) bool {
			return strings.HasPrefix(h.label, "lengths = 2,000") // 10,000 may be
		})...)
	}
	if len(all) < 1000 {
		t.Errorf("%d hostile requests, want 1,000", len(all))
	}
	for _, h := range all {
		err := call(t.Context(), t, f.Conn, servertest.Methods()[h.method], h.request)
		if status.Code(err) != h.code {
			t.Errorf("%s, %s: %.300v, want %s", h.method, h.label, err, h.code)
		}
		if len(status.Convert(err).Message()) > 10_000 {
			t.Errorf("%s, %s: a message of %d bytes", h.method, h.label, len(status.Convert(err).Message()))
		}
	}

	list, err := f.Studies.ListStudies(t.Context(), &dparetov1.ListStudiesRequest{})
	if err != nil || len(list.GetStudies()) != 1 {
		t.Errorf("%d studies afterwards, error %v; want 1", len(list.GetStudies()), err)
	}
	if again := f.One("studies/full", "w"); again.GetName() != trial.GetName() || again.GetState() != dparetov1.TrialState_TRIAL_STATE_ACTIVE {
		t.Errorf("%s is %s afterwards", again.GetName(), again.GetState())
	}
	t.Logf("%d requests", len(all))
}
