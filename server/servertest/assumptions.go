package servertest

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
)

// checkAssumptions fails the test if a response lists assumptions without a premise, twice, or out of order,
// whichever mechanism, accountant or policy they come from.
func (f *Fixture) checkAssumptions(ctx context.Context, method string, req, resp any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if err := call(ctx, method, req, resp, conn, opts...); err != nil {
		return err
	}
	return protorange.Range(resp.(proto.Message).ProtoReflect(), func(p protopath.Values) error {
		list, ok := p.Index(-1).Value.Interface().(protoreflect.List)
		if !ok || p.Index(-1).Step.Kind() != protopath.FieldAccessStep || p.Index(-1).Step.FieldDescriptor().Name() != "assumptions" {
			return nil
		}
		all := make([]*dparetov1.Assumption, list.Len())
		for i := range all {
			all[i] = list.Get(i).Message().Interface().(*dparetov1.Assumption)
			if all[i].GetText() == "" || all[i].GetPremise() == 0 || all[i].GetCheckedBy() == 0 {
				f.T.Errorf("%s: the assumption %v has no premise", method, all[i])
			}
		}
		if !slices.EqualFunc(show.JoinAssumptions(all), all, func(a, b *dparetov1.Assumption) bool { return proto.Equal(a, b) }) {
			f.T.Errorf("%s: the assumptions %v are not in the order of their premises, each once", method, all)
		}
		return nil
	})
}
